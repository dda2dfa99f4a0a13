"""No limit keeps a release out that releases something; one that releases nothing is limited."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from uuid import uuid4

import pytest
from django.test import Client

from allocations.models import Allocation
from portal.api.http.throttling import MAX_RELEASE
from portal.core.slots import Slots
from portal.http import counters, early_refusals, person_limits
from tests.support.fleet import allocate
from tests.support.people import client, person

V1 = "/api/v1/allocations"


@pytest.fixture(autouse=True)
def one_minute(monkeypatch):
    monkeypatch.setattr(counters, "_paused_until", 0.0)
    for module in (counters, early_refusals):
        monkeypatch.setattr(module.time, "time", lambda: 1_000_000_007.0)


@pytest.fixture
def spent(settings, fleet_of_two_teams, member):
    """Return the client of a member who has used up both limits, and the time of the processor."""
    settings.API_REQUESTS_PER_MINUTE, settings.PROCESSOR_SECONDS_PER_MINUTE = 3, 0.002
    api = client(member)
    assert [api.get("/api/v1/me").status_code for _ in range(5)][-1] == 429
    assert {release(api, uuid4()) for _ in range(5)} == {429}
    return api


def release(api, id_) -> int:
    return int(api.post(f"{V1}/{id_}/release", {}, format="json").status_code)


def several(api, **body) -> int:
    return int(api.post(f"{V1}/release", body, format="json").status_code)


@contextmanager
def occupied(slots: Slots) -> Iterator[None]:
    """Have as many requests run and wait as may, where one may run."""
    with ExitStack() as requests:
        for _ in range(1 + person_limits.WAITING):
            slots._inside.acquire()
            requests.callback(slots._inside.release)
        yield


@pytest.mark.django_db
def test_the_first_release_of_each_allocation_is_never_refused(spent, member, project):
    rows = [allocate(member, project, count=1) for _ in range(6)]
    assert [release(spent, row.pk) for row in rows] == [200] * 6
    assert {row.desired for row in Allocation.objects.all()} == {Allocation.Desired.RELEASED}


@pytest.mark.django_db
def test_a_release_of_several_is_never_refused_if_it_releases_one(spent, member, project):
    first, second, third = (allocate(member, project, count=1) for _ in range(3))
    assert several(spent, ids=[str(first.pk), str(uuid4()), "none"]) == 200
    assert several(spent, ids=[str(first.pk), str(second.pk)]) == 200
    assert several(spent, project=[project.slug]) == 200
    assert not Allocation.objects.filter(desired=Allocation.Desired.HELD).exists()
    assert third.pk


@pytest.mark.django_db
def test_what_was_released_before_is_refused_without_keeping_others_out(spent, member, project):
    before, after = (allocate(member, project, count=1) for _ in range(2))
    assert [release(spent, before.pk) for _ in range(3)] == [200, 429, 429]
    assert release(spent, after.pk) == 200


@pytest.mark.django_db
@pytest.mark.parametrize(
    "body", [{"ids": [str(uuid4())]}, {"project": ["vision-train"]}, {"mine": True, "dry_run": True}, {"ids": 1}]
)
def test_a_release_of_several_that_releases_nothing_is_limited(spent, body):
    assert several(spent, **body) == 429


@pytest.mark.django_db
def test_what_others_hold_makes_no_release_of_ones_own(spent, team, project):
    other = allocate(person(team, "member"), project, count=1)
    assert several(spent, ids=[str(other.pk)]) == several(spent, project=[project.slug]) == 429


@pytest.mark.django_db
def test_a_release_is_read_only_as_far_as_one_needs(api):
    assert several(api, mine=True, reason="x" * MAX_RELEASE) == 413


@pytest.mark.django_db
def test_a_release_waits_for_no_request_of_the_same_person_that_runs(settings, api, member, project):
    settings.PERSON_REQUESTS_AT_ONCE = 1
    row = allocate(member, project, count=1)
    with occupied(person_limits._slots_of(member.pk)):
        assert api.get("/api/v1/me").status_code == 429
        assert release(api, row.pk) == 200


@pytest.mark.django_db
def test_releases_of_one_allocation_share_slots_and_keep_none_of_another_out(settings, api, member, project):
    settings.PERSON_REQUESTS_AT_ONCE = 1
    one, another = (allocate(member, project, count=1) for _ in range(2))
    named = json.dumps({"ids": [str(one.pk)], "reason": "done"})
    with ExitStack() as requests:
        for what in (f"{V1}/{one.pk}/release", named):
            running = person_limits._slots_of((member.pk, what))
            requests.enter_context(occupied(running))
        assert (release(api, one.pk), several(api, reason="done", ids=[str(one.pk)])) == (429, 429)
        assert several(api, ids=[str(another.pk)]) == 200
    assert release(api, one.pk) == 200


@pytest.mark.django_db
@pytest.mark.parametrize("path", [f"{V1}/none/release?a=1", f"{V1}/none/release", f"{V1}/release?a=1"])
def test_a_refused_release_counts_wherever_it_is_refused(settings, api, path):
    settings.API_REQUESTS_PER_MINUTE = 2
    answers = [api.post(path, {}, format="json").status_code for _ in range(4)]
    assert answers[2:] == [429, 429]
    assert 429 not in answers[:2]


@pytest.mark.django_db
def test_what_only_ends_like_a_release_is_counted_as_any_request(settings, api):
    settings.API_REQUESTS_PER_MINUTE = 2
    assert [api.post("/api/v1/teams/release", {}, format="json").status_code for _ in range(3)] == [405, 405, 429]


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["ids", "phase", "name"])
def test_a_list_that_is_too_long_is_refused_before_it_is_read(api, name):
    answer = api.post(f"{V1}/release", {name: [1] * 1000}, format="json")
    assert answer.json()["errors"] == {name: ["Give at most 100."]}


@pytest.mark.django_db
def test_a_browser_session_releases_several_with_its_csrf_token(fleet_of_two_teams, member, project):
    rows = [allocate(member, project, count=1) for _ in range(2)]
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(member)
    browser.get("/allocations")
    token = browser.cookies["csrftoken"].value
    body = {"ids": [str(row.pk) for row in rows]}
    answer = browser.post(f"{V1}/release", body, "application/json", headers={"X-CSRFToken": token})
    assert [row["released"] for row in answer.json()["results"]] == [True, True]
