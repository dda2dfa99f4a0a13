"""The time of an allocation in REST answers: hours held, an asked date, and how long it waits."""

from datetime import datetime, timedelta

import pytest

from allocations.domain.held_time import HeldTime
from allocations.models import Allocation
from portal.core import clock
from tests.support.fleet import allocate
from tests.support.pages import held

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fleet_of_two_teams")]
URL = "/api/v1/allocations"
ASKED = {"project": "vision-train", "offering": "l40s/whole"}


def times(body):
    return tuple(body[name] for name in ("hours", "hours_left", "ends_at"))


def parsed(text):
    return datetime.fromisoformat(text)


def test_hours_have_no_end_until_held(api):
    body = api.post(URL, {**ASKED, "hours": "4"}, format="json").json()
    assert times(body) == ("4.000000", "4.000000", None)
    assert parsed(body["give_up_at"]) - parsed(body["created_at"]) == timedelta(days=7)


def test_the_end_is_there_once_it_is_held(api, member, project):
    with clock.frozen(clock.this_minute()):
        row = held(allocate(member, project, hours=4), hours=1)
        body = api.get(f"{URL}/{row.pk}").json()
    assert row.held_since is not None
    assert parsed(body["ends_at"]) == row.held_since + timedelta(hours=4)
    assert body["hours_left"] == "3.000000"


def test_a_date_has_no_hours(api):
    until = clock.now() + timedelta(hours=30)
    body = api.post(URL, {**ASKED, "ends_at": until.isoformat()}, format="json").json()
    assert (body["hours"], body["hours_left"], parsed(body["ends_at"])) == (None, None, until)
    assert body["give_up_at"] == body["ends_at"]


def test_a_time_to_give_up_is_taken_and_answered(api):
    until = clock.now() + timedelta(hours=30)
    body = api.post(URL, {**ASKED, "give_up_at": until.isoformat()}, format="json").json()
    assert parsed(body["give_up_at"]) == until


@pytest.mark.parametrize(("hours", "words"), [(-1, "not after the start"), (9000, "at most 366 days")])
def test_a_time_to_give_up_that_cannot_be_is_400_and_names_what_can(api, hours, words):
    asked = {**ASKED, "give_up_at": (clock.now() + timedelta(hours=hours)).isoformat()}
    for path in (URL, f"{URL}/preview"):
        problem = api.post(path, asked, format="json").json()
        assert (problem["status"], problem["reason"]) == (400, "time_invalid")
        assert words in problem["errors"]["give_up_at"][0]
    assert not Allocation.objects.exists()


def test_a_preview_says_which_time_is_meant(api):
    seen = api.post(f"{URL}/preview", {**ASKED, "hours": "4"}, format="json").json()
    assert (seen["hours"], seen["ends_at"]) == ("4.000000", None)
    assert parsed(seen["give_up_at"]) > clock.now() + timedelta(days=6)
    assert seen["price"]["total"] == "4.4000"


def test_extending_adds_to_the_hours_held(api, member, project):
    row = allocate(member, project, hours=1)
    body = api.post(f"{URL}/{row.pk}/extend", {"hours": "2.5"}, format="json").json()
    assert times(body) == ("3.500000", "3.500000", None)


def test_extending_moves_the_end_of_what_is_held(api, member, project):
    row = held(allocate(member, project, hours=1))
    assert row.held_since is not None
    body = api.post(f"{URL}/{row.pk}/extend", {"hours": "2.5"}, format="json").json()
    assert parsed(body["ends_at"]) == row.held_since + timedelta(hours=3.5)


def test_more_than_a_year_may_not_be_left(api, member, project):
    row = allocate(member, project, hours=8784)
    answer = api.post(f"{URL}/{row.pk}/extend", {"hours": 1}, format="json")
    assert (answer.status_code, answer.json()["reason"]) == (400, "time_invalid")


def test_after_an_eviction_the_wait_is_told_anew(api, member, project):
    row = allocate(member, project, hours=8)
    until = row.created_at + timedelta(days=3)
    time = HeldTime(timedelta(hours=3), until)
    Allocation.objects.filter(pk=row.pk).update(held_before=time.before, held_until=time.until)
    body = api.get(f"{URL}/{row.pk}").json()
    assert times(body) == ("8.000000", "5.000000", None)
    assert parsed(body["give_up_at"]) == row.created_at + timedelta(days=10)
