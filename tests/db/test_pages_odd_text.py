"""People's text is shown as they typed it: odd text in every field that takes it, and every page as every role."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.forms import CharField
from django.utils import timezone

from allocations.models import Allocation, MirrorObject
from frontend.templatetags.portal import times
from portal.core.quotation import quoted
from tests.support import access_matrix, api_contract, sizes
from tests.support.pages import text
from tests.support.world import World, world

pytestmark = pytest.mark.django_db
NEPAL = "Asia/Kathmandu"
TIME = "2031-07-02 03:04 UTC"
READ_AS_A_TIME = 'datetime="2031-07-02T03:04:00+00:00"'
NO_TIMES = ("2026-13-45 99:99 UTC", "0000-00-00 00:00 UTC", "2026-02-30 24:60 UTC", "٢٠٢٦-١١-٢٥ ١٥:٢٨ UTC")
ODD = (
    f"{TIME} 2026-13-45 99:99 UTC ”<b>{{{{ 7 }}}}%s",
    f"“{TIME} 0001-01-01 00:00 UTC” \\ {{% x %}}",
    f"' {TIME} ” {TIME} “",
    f"\u202e{TIME}\u2028\x1b]0;x\x07\ufeff",
    "9999-12-31 23:59:59 UTC 1e3 ٢٠٢٦ &#x27;",
)
ROLES = [role for role in access_matrix.ROLES if not role.endswith("(reading)")]
WRITERS = ("member", "operator")


@pytest.fixture
def there(team, other_team, project, settings) -> World:
    settings.LOGINS_PER_MINUTE = settings.LOGIN_FAILURES_PER_MINUTE = 1_000_000
    settings.API_REQUESTS_PER_MINUTE = settings.PAGE_REQUESTS_PER_MINUTE = 1_000_000
    found = world(team, other_team, project)
    found.zone = NEPAL
    return found


def routes(*, rest: bool) -> list[str]:
    found = [pattern for pattern in access_matrix.routes() if access_matrix.is_rest(pattern) == rest]
    return [pattern for pattern in found if not pattern.startswith("/docs")]


def rest_fields(method: str, pattern: str) -> Iterator[tuple[str, int]]:
    """Yield the names of free text in the body of a REST operation, with the greatest length."""
    for name, schema in api_contract.body_schema(method, pattern).get("properties", {}).items():
        choices = [api_contract.resolved(each) for each in schema.get("anyOf", [schema])]
        if any("string" in each.get("type", "") and not {"enum", "format"} & each.keys() for each in choices):
            yield name, max(each.get("maxLength", 200) for each in choices)


def form_fields(there: World, pattern: str) -> Iterator[tuple[str, int]]:
    """Yield the names of free text in the forms of a page, with the greatest length."""
    for form in there.forms(pattern):
        for name, field in form.fields.items():
            if isinstance(field, CharField):
                yield form.add_prefix(name), field.max_length or 200


def tried(ask: Any, *given: Any, **changes: Any) -> bool:
    """Ask, and keep the effect if it is accepted; return whether it was. Nor is what is refused read as a time."""
    with transaction.atomic():
        answer = ask(*given, **changes)
    assert answer.status_code in (503, *range(500)), (given, changes)  # no cluster is there
    assert READ_AS_A_TIME not in text(answer), (given, changes)
    return bool(answer.status_code < 400)


def write_everywhere(there: World, odd: str) -> set[str]:
    """Send the text as each field that takes text, over REST and on pages; return where it was accepted."""
    accepted = set()
    for role in WRITERS:
        for pattern in routes(rest=True):
            for method in ("POST", "PUT"):
                for name, most in rest_fields(method, pattern):
                    if tried(there.rest, role, method, pattern, **{name: odd[:most]}):
                        accepted.add(f"{method} {pattern} {name}")
        for pattern in routes(rest=False):
            for name, most in dict(form_fields(there, pattern)).items():
                tried(there.page, role, "GET", pattern, **{name: odd[:most]})
                if tried(there.page, role, "POST", pattern, **{name: odd[:most]}):
                    accepted.add(f"POST {pattern} {name}")
    return accepted


def pages(there: World) -> Iterator[tuple[str, str, str]]:
    """Yield every page as every role sees it: role, address, HTML."""
    first, *others = Allocation.objects.order_by("created_at")
    for pattern in routes(rest=False):
        for there.allocation in [first, *(others if "<uuid:id_>" in pattern else [])]:
            for role in ROLES:
                answer = there.page(role, "GET", pattern)
                assert answer.status_code in (503, *range(500)), (role, pattern)
                yield role, there.path(pattern, role), "" if answer.streaming else text(answer)


def speak_for_the_cluster(message: str) -> None:
    """Put the text where the words of Kueue and of the scheduler are kept."""
    for row in MirrorObject.objects.filter(facts__has_key="conditions"):
        facts: Any = row.facts
        facts["conditions"]["QuotaReserved"]["message"] = message
        row.save()
    Allocation.objects.update(message=message)


def test_no_text_breaks_a_page_and_none_of_people_is_read_as_a_time(there):
    for odd in ODD[: sizes.size(1, len(ODD))]:
        with transaction.atomic():
            accepted = write_everywhere(there, odd)
            assert {"POST /api/v1/allocations purpose", "POST /api/v1/allocations/<str:id_>/release reason"} <= accepted
            speak_for_the_cluster(odd.replace(TIME, ""))
            assert [(role, address) for role, address, page in pages(there) if READ_AS_A_TIME in page] == []
            transaction.set_rollback(True)


@pytest.mark.parametrize("words", NO_TIMES)
def test_what_no_calendar_has_stays_as_it_was_typed(words):
    assert times(f"see {words}.") == f"see {words}."


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
@pytest.mark.parametrize("words", ["0001-01-01 00:00 UTC", "9999-12-31 23:59:59 UTC"])
def test_the_first_and_the_last_time_of_the_calendar_are_shown_in_every_zone(words, zone):
    with timezone.override(zone):
        assert "<time" in times(words)


def test_a_time_that_people_typed_is_no_time_of_the_portal():
    for typed in ODD:
        assert "<time" not in times(f"1 × h100/whole: {quoted(typed)}")
    assert "<time" not in times(f"A sentence that was cut off: {quoted(TIME)[:-1]}")


def test_a_time_of_the_portal_beside_what_people_typed_is_in_the_readers_zone():
    with timezone.override(NEPAL):
        assert times(f"{quoted(TIME)} until {TIME}").count(READ_AS_A_TIME) == 1
