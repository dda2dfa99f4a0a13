"""What is available may be shown a moment old; what decides, and who has just written, never sees it so."""

import pytest

from allocations.capacity import fleet as kept
from allocations.models import Allocation
from portal.core import clock
from portal.http import counters
from portal.tenants.actors import SYSTEM
from quotas.catalog.models import Pool
from quotas.limits import services as limits
from quotas.metering import services as metering
from tests.support.fleet import allocate, fleet
from tests.support.people import client, person
from tests.support.quotas import attribution

pytestmark = pytest.mark.django_db
OFFERINGS = "/api/v1/offerings"


@pytest.fixture(autouse=True)
def kept_for_a_minute(settings, team, other_team, monkeypatch):
    settings.FLEET_MAX_AGE_S = 60
    monkeypatch.setattr(counters, "_paused_until", 0.0)
    monkeypatch.setattr(kept, "_kept", [])
    fleet(team, other_team)


@pytest.fixture
def api(member):
    return client(member)


@pytest.fixture
def held_by_others(other_team):
    """Return a function by which others hold so many l40s, as the watcher would find it."""

    def hold(count: int) -> None:
        row = Allocation(pk="00000000-0000-4000-8000-000000000001")
        metering.open_interval(row.pk, row.pk, "others", clock.now(), attribution(team=other_team.slug), count, {})

    return hold


def l40s(api):
    return next(row for row in api.get(OFFERINGS).json()["results"] if row["id"] == "l40s/whole")


def test_what_is_free_is_shown_as_it_was_a_moment_ago(api, held_by_others):
    assert l40s(api)["capacity"]["free"] == 8
    held_by_others(6)
    assert l40s(api)["capacity"]["free"] == 8


def test_once_that_is_too_old_it_is_read_again(api, held_by_others, settings):
    assert l40s(api)["capacity"]["free"] == 8
    held_by_others(6)
    settings.FLEET_MAX_AGE_S = 0
    assert l40s(api)["capacity"]["free"] == 2


def test_a_preview_knows_what_is_free_now(api, project, held_by_others):
    assert l40s(api)["capacity"]["free"] == 8
    held_by_others(8)
    body = {"project": project.slug, "offering": "l40s/whole", "count": 1, "hours": "1"}
    assert api.post("/api/v1/allocations/preview", body, format="json").json()["fits"] == "queue"


def test_who_wrote_sees_what_is_free_now_and_others_need_not(api, project, held_by_others, team):
    colleague = client(person(team))
    assert (l40s(api)["capacity"]["free"], l40s(colleague)["capacity"]["free"]) == (8, 8)
    held_by_others(6)
    assert l40s(colleague)["capacity"]["free"] == 8
    body = {"project": project.slug, "offering": "l40s/whole", "count": 1, "hours": "1"}
    assert api.post("/api/v1/allocations", body, format="json").status_code == 201
    assert l40s(api)["capacity"]["free"] == 2


def test_the_page_after_a_write_shows_what_is_free_now(client, member, project, held_by_others):
    client.force_login(member)
    assert "4</a>" in client.get("/").content.decode()
    held_by_others(6)
    row = allocate(member, project)
    assert client.post(f"/allocations/{row.pk}/release").status_code == 302
    assert "2</a>" in client.get("/").content.decode()


def test_without_redis_nothing_old_is_shown(api, held_by_others, monkeypatch):
    assert l40s(api)["capacity"]["free"] == 8
    held_by_others(6)
    monkeypatch.setattr(counters, "_paused_until", float("inf"))
    assert l40s(api)["capacity"]["free"] == 2


def test_limits_and_what_the_team_has_of_them_are_always_those_of_now(api, team, member, project):
    assert l40s(api)["mine"] | {"after": None} == {
        **{"limit": 4, "used": 0, "can_get_now": 4, "can_borrow": 0, "max_quota": 4, "after": None}
    }
    limits.set_limit(SYSTEM, team, Pool.objects.get(key="l40s/gpu"), 3)
    row = allocate(member, project)
    Allocation.objects.filter(pk=row.pk).update(phase="starting")
    mine = l40s(api)["mine"]
    assert (mine["limit"], mine["used"], mine["can_get_now"]) == (3, 1, 2)
