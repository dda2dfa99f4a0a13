"""Fields of the request form, whose HTML a web process keeps."""

from typing import Any

from django.utils import timezone

from frontend import base_form
from frontend.forms import RequestForm


def group(name: str, **given: Any) -> str:
    return RequestForm([], **given)[name].as_field_group()


def test_a_field_has_the_value_of_its_own_form():
    shown = [group("name", initial={"name": name}) for name in ("first", "<b>", "first")]
    assert 'value="first"' in shown[0]
    assert 'value="&lt;b&gt;"' in shown[1]
    assert shown[0] == shown[2]


def test_a_field_of_a_form_that_was_sent_has_its_errors():
    group("count", initial={"count": "0"})
    assert "errorlist" in RequestForm([], {"count": "0"})["count"].as_field_group()


def test_the_help_of_a_time_names_the_zone_of_the_reader():
    for zone in ("Europe/Berlin", "UTC"):
        with timezone.override(zone):
            assert f"Time zone {zone}." in group("starts_at")


def test_no_more_is_kept_than_fits(monkeypatch):
    monkeypatch.setattr(base_form, "MAX_KEPT", 3)
    for number in range(9):
        assert f'value="{number}"' in group("name", initial={"name": str(number)})
    assert len(base_form._kept) <= 3
