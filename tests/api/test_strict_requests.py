"""What a client gets wrong is told: unknown query parameters, values that only Python would take, repeated keys."""

from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern
from rest_framework.test import APIClient

from portal.api.urls import v1
from portal.core.models import AuditEntry
from portal.tenants.models import Scope
from tests.support.fleet import fleet
from tests.support.people import client, person
from tests.support.world import world

pytestmark = pytest.mark.django_db
URL = "/api/v1/allocations"
OPERATIONS = [route for route in v1 if route.name != "api-schema"]


@pytest.fixture
def api(team, other_team, project) -> APIClient:
    fleet(team, other_team)
    return client(person(team))


def post(api: APIClient, body: str, path: str = URL) -> Any:
    return api.generic("POST", path, body, content_type="application/json")


def address(route: URLPattern) -> str:
    """Return the address of a route with some value for each of its parameters."""
    values = {"<str:": "x", "<int:": "1", "<uuid:": "00000000-0000-4000-8000-000000000000"}
    parts = str(route.pattern).split("/")
    return "/api/v1/" + "/".join(next((values[kind] for kind in values if kind in part), part) for part in parts)


@pytest.mark.parametrize("route", OPERATIONS, ids=lambda route: str(route.pattern))
def test_every_operation_refuses_a_query_parameter_that_it_does_not_know(route):
    operator = client(person(platform_role="operator"))
    path = address(route)
    methods = [name for name in route.callback.cls.http_method_names if name not in ("options", "head")]
    assert methods
    for method in methods:
        answer = operator.generic(method.upper(), f"{path}?porject=vision")
        assert (answer.status_code, list(answer.json()["errors"])) == (400, ["porject"])


def test_a_refused_query_parameter_is_told_with_those_that_there_are(api):
    errors = api.get(f"{URL}?porject=vision").json()["errors"]
    assert "project" in errors["porject"][0]
    assert "cursor" in errors["porject"][0]


def test_who_has_no_token_is_asked_for_one_before_parameters_are_read():
    assert APIClient().get(f"{URL}?porject=vision").status_code == 401


def test_head_is_answered_as_get_by_every_route_and_adds_nothing_to_the_audit_log(team, other_team, project, settings):
    settings.API_REQUESTS_PER_MINUTE = 100_000
    there = world(team, other_team, project)
    patterns = [f"/api/v1/{route.pattern}" for route in OPERATIONS if "get" in route.callback.cls.http_method_names]
    assert len(patterns) > 30
    for pattern in patterns:
        entries = AuditEntry.objects.count()
        head = there.rest("operator", "HEAD", pattern)
        assert (head.content if not head.streaming else b"".join(head.streaming_content)) == b"", pattern
        assert AuditEntry.objects.count() == entries, pattern
        get = there.rest("operator", "GET", pattern)
        assert (head.status_code, head["Content-Type"]) == (get.status_code, get["Content-Type"]), pattern


def test_head_of_an_export_writes_no_entry_of_an_export():
    operator = client(person(platform_role="operator"))
    entries = AuditEntry.objects.filter(action="audit.export")
    assert operator.head("/api/v1/audit/export").status_code == 200
    assert not entries.exists()
    assert operator.get("/api/v1/audit/export").status_code == 200
    assert entries.count() == 1


def test_head_of_an_export_is_refused_as_get(member):
    assert client(member).head("/api/v1/audit/export").status_code == 403


def test_head_needs_a_method_to_read():
    operator = client(person(platform_role="operator"), Scope.READ)
    assert operator.head("/api/v1/teams").status_code == 200
    assert operator.head("/api/v1/allocations/preview").status_code == 405


@pytest.mark.parametrize("hours", ["", " ", "1_000", "١", "+1", " 1 ", "1e2", "0x8"])
def test_hours_are_a_decimal_number_and_nothing_else(api, hours):
    body = {"project": "vision-train", "offering": "l40s/whole", "hours": hours}
    answer = api.post(URL, body, format="json")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["hours"])
    assert "8 or 0.5" in answer.json()["errors"]["hours"][0]


@pytest.mark.parametrize(
    "time", ["2126-W10-1T10:00:00Z", "21261121T100000Z", "2126-11-21T10:00:00", "٢١٢٦-11-21T10:00:00Z"]
)
def test_a_time_is_as_rfc_3339_writes_it(api, time):
    body = {"project": "vision-train", "offering": "l40s/whole", "ends_at": time}
    answer = api.post(URL, body, format="json")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["ends_at"])
    assert "2026-11-30T18:00:00Z" in answer.json()["errors"]["ends_at"][0]


@pytest.mark.parametrize(
    "query", ["costs?window=2026-W10-1T10:00:00Z,2026-W10-2T10:00:00Z", "audit?since=2026-W10-1T00:00:00Z"]
)
def test_a_time_in_a_query_is_as_rfc_3339_writes_it(query):
    answer = client(person(platform_role="operator")).get(f"/api/v1/{query}")
    assert answer.status_code == 400
    assert "2026-" in str(answer.json()["errors"])


@pytest.mark.parametrize("query", ["audit/heads?since=2026-W10", "audit/heads?since=20261130"])
def test_a_day_in_a_query_is_written_with_dashes(query):
    answer = client(person(platform_role="operator")).get(f"/api/v1/{query}")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["since"])


@pytest.mark.parametrize("limit", ["١", "²", "1_0", "", "9" * 5000])
def test_a_limit_has_digits_of_ascii(api, limit):
    assert list(api.get(URL, {"limit": limit}).json()["errors"]) == ["limit"]


@pytest.mark.parametrize(
    "body",
    [
        '{"project": "vision-train", "offering": "l40s/whole", "count": 1, "count": 8}',
        '{"project": "vision-train", "offering": "l40s/whole", "count": {"count": 1, "count": 1}}',
    ],
)
def test_a_key_that_is_there_twice_is_named(api, body):
    answer = post(api, body)
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["count"])
    assert "Give it once" in answer.json()["errors"]["count"][0]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("allocations", '{"project": null, "offering": {"a": null}, "constraints": null, "sharing": "x"}'),
        ("allocations", '{"sharing": {"strategy": "MPS", "per_device_pinned_memory_limit": "1Gi"}}'),
        ("allocations", "9" * 5000),
        ("allocations", '{"count": %s}' % ("9" * 5000)),
        ("allocations", "\ufeff{}"),
        ("allocations", "NaN"),
        ("tokens", '{"name": null, "scopes": "read", "expires_at": null}'),
        ("tokens", '{"name": "x", "scopes": {"a": 1}}'),
        ("tokens", '{"name": "x", "scopes": [null]}'),
        ("tokens", '{"name": "x", "scopes": [true, ["read"]]}'),
        ("projects", '{"slug": [], "egress": null, "object_limits": []}'),
        ("projects", '{"guard": null, "pod_security": {"a": null}}'),
    ],
)
def test_errors_have_no_words_of_python(api, path, body):
    answer = post(client(person(platform_role="operator")), body, f"/api/v1/{path}")
    assert answer.status_code == 400
    assert words_of_python(answer) == []


def words_of_python(answer: Any) -> list[str]:
    """Return what Python would say in the answer's sentences."""
    internal = (
        "int()",
        "NoneType",
        "None",
        "True",
        '"str"',
        "dict",
        "codec",
        "sys.",
        "Traceback",
        "Error(",
        "'",
        "\\\\x",
    )
    return [each for each in internal if each in answer.content.decode()]


@pytest.mark.parametrize("amount", ["many", "it's", "1\\n", "\\u0000", "\\ud800", "4Q", "4Zi", "1.5"])
@pytest.mark.parametrize("field", ["cpu_per_gpu", "memory_per_gpu", "accepted", "title"])
def test_errors_about_a_flavor_have_no_words_of_python(api, field, amount):
    operator = client(person(platform_role="operator"))
    body = f'{{"{field}": "{amount}"}}'
    answer = operator.generic("PUT", "/api/v1/flavors/l40s", body, "application/json", headers={"If-Match": "*"})
    assert [each for each in words_of_python(answer) if each not in amount] == []


def test_a_body_that_is_no_text_in_utf_8_is_told(api):
    answer = api.generic("POST", URL, b"\xff" * 70, content_type="application/json")
    assert (answer.status_code, answer.json()["reason"]) == (400, "malformed")
    assert "not text" in answer.json()["detail"]


def test_an_unknown_field_of_a_new_token_is_named(api):
    answer = api.post("/api/v1/tokens", {"name": "x", "scopes": ["read"], "expires": "2126-01-01"}, format="json")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["expires"])


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize(
    "path",
    [
        "/api",
        "/api/",
        "/api%0A",
        "/api/%0A",
        "/api/v1",
        "/api/v1/me/",
        "/api/v1/allocations/",
        "/api/a%0Ab",
        "/api/v1/%0A",
    ],
)
def test_below_api_every_error_is_a_problem(method, path):
    browser = Client(enforce_csrf_checks=True)
    answer = browser.generic(method, path, "{}", content_type="application/json")
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")


@pytest.mark.parametrize("path", ["allocations/%0A", "teams/a%0Ab", "offerings/%0A/%0A/device-schema"])
def test_a_name_with_a_line_break_is_not_there(api, path):
    answer = client(person(platform_role="operator")).get(f"/api/v1/{path}")
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")


def test_a_wrong_host_is_answered_below_api_with_a_problem():
    answer = Client().get("/api/v1/nowhere", headers={"host": "elsewhere.example"})
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
