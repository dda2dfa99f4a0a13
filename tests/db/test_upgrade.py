"""What was there before hours were time held survives the upgrade: allocations, leases, tokens and names.

``tests/upgrade/before_time_held.sql`` is a dump of the schema of the release before (migration 0011 of allocations),
with rows that its own services wrote: an allocation that is held, one that waits, one that has ended, a lease whose row
is lost, and a token. By ``pg_dump --inserts --no-owner --no-privileges``, without comments, settings and permissions.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import transaction
from pytest_django.plugin import DjangoDbBlocker
from rest_framework.test import APIClient

from allocations.domain.held_time import Due
from allocations.domain.objects import Snapshot
from allocations.lifecycle import spec_of_row, transitions
from allocations.lifecycle.modes import hold
from allocations.models import Allocation
from allocations.reconcile import recovery
from portal.core import clock
from portal.core.errors import Refused
from portal.tenants.models import User
from quotas.limits import history
from quotas.limits.models import Limit
from quotas.limits.tree import Quota
from tests.support import upgrade
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate
from tests.support.observed import quotas_listed

TOKEN = "gpup_d390908e9e43_iGTne6tfzltNubV1LO-4cO3TDjyKyaQJ6a_zSVeHxY4"
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
URL = "/api/v1/allocations"


@pytest.fixture(scope="module")
def upgraded(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Let Django use the dump, migrated."""
    with django_db_blocker.unblock(), upgrade.upgraded(upgrade.BEFORE_TIME_HELD):
        yield


@pytest.fixture(autouse=True)
def an_hour_later(upgraded: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Freeze the clock an hour after the rows were written; what a test writes is undone."""
    with django_db_blocker.unblock(), transaction.atomic(), clock.frozen(NOON + HOUR):
        yield
        transaction.set_rollback(True)


@pytest.fixture
def api() -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {TOKEN}")
    return client


def row(name: str) -> Allocation:
    return spec_of_row.rows().get(name=name)


def reconciled(name: str) -> Allocation:
    """Record the time of an allocation, as its controller does."""
    found = row(name)
    spec, meant = spec_of_row.resolved_spec(found), spec_of_row.intent(found)
    state = hold.assess(spec, meant, Snapshot(), {}, clock.now(), spec_of_row.deadlines(found))
    transitions.record_time(found, state)
    return row(name)


def test_what_was_asked_before_keeps_its_end() -> None:
    for name, hours in (("held", 8), ("waiting", 1.5)):
        found = reconciled(name)
        assert (found.hours, found.give_up_at, found.ends_at) == (None, None, NOON + hours * HOUR)
        assert spec_of_row.time(found).due == Due(NOON + hours * HOUR, "ends_at")


def test_how_long_it_was_held_is_known_from_the_ledger() -> None:
    assert reconciled("held").held_since == NOON


def test_the_history_of_quotas_and_departments_begins_with_what_there_was() -> None:
    [period] = history.periods(LOCAL, clock.now() + timedelta(days=3650), clock.now() + timedelta(days=3651))
    assert period.parents == {"dept-research": None, "team-vision": "dept-research"}
    assert {pool: dict(quotas) for pool, quotas in period.quotas.items()} == {
        limit.pool.key: {"team-vision": Quota(limit.nominal, limit.borrowing, limit.lending)}
        for limit in Limit.objects.filter(team__slug="vision", user=None)
        if limit.pool
    }
    assert period.quotas


def test_an_old_token_works_and_shows_old_allocations(api: APIClient) -> None:
    answer = api.get(URL)
    assert answer.status_code == 200
    ends = {one["name"]: (one["phase"], one["hours"], one["ends_at"]) for one in answer.json()["results"]}
    assert ends == {
        "held": ("active", None, "2026-11-23T20:00:00Z"),
        "waiting": ("queued", None, "2026-11-23T13:30:00Z"),
        "over": ("ended", None, "2026-11-23T20:00:00Z"),
    }


def test_an_old_token_asks_extends_and_releases(api: APIClient) -> None:
    asked = api.post(URL, {"project": "vision-train", "offering": "l40s/whole", "hours": 2}, format="json")
    assert (asked.status_code, asked.json()["hours"]) == (201, "2.000000")
    held = api.post(f"{URL}/{row('held').pk}/extend", {"hours": 2}, format="json").json()
    assert (held["hours"], held["ends_at"]) == (None, "2026-11-23T22:00:00Z")
    assert api.post(f"{URL}/{row('waiting').pk}/release", {}, format="json").status_code == 200


def test_an_old_lease_without_a_row_is_made_again_with_its_end() -> None:
    quotas_listed(1)
    recovery.adopt(LOCAL, "vision-train")
    lost = row("lost")
    assert (lost.recovered, lost.hours, lost.ends_at) == (True, None, NOON + 8 * HOUR)
    assert (lost.held_before, lost.held_until) == (timedelta(0), None)


def test_an_old_lease_is_that_of_its_row() -> None:
    quotas_listed(1)
    recovery.adopt(LOCAL, "vision-train")
    assert Allocation.objects.filter(name="held").count() == 1


def test_the_name_of_what_had_ended_is_free_and_that_of_what_lives_is_not() -> None:
    ada = User.objects.get(username="ada")
    project = row("held").project
    assert allocate(ada, project, name="over", hours=Decimal(1)).name == "over"
    with pytest.raises(Refused, match="that has not ended"):
        allocate(ada, project, name="held")
