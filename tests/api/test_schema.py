from django.core.management import call_command

from portal.api.urls import v1


def test_every_route_is_described_without_a_warning(tmp_path):
    file = tmp_path / "schema.yaml"
    call_command("spectacular", "--validate", "--fail-on-warn", f"--file={file}")
    described = file.read_text(encoding="utf-8")
    assert "openapi: 3.1.0" in described
    routes = [
        str(route.pattern).replace("<str:", "{").replace("<int:", "{").replace("<uuid:", "{").replace(">", "}")
        for route in v1
    ]
    assert [route for route in routes if f"/api/v1/{route}:" not in described and route != "schema"] == []
