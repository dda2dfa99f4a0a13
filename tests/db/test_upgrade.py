"""What the first release wrote survives the upgrade: allocations, leases, charges, tokens and names.

`python -m tests.upgrade` wrote the database.
"""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from django.db import transaction
from pytest_django.plugin import DjangoDbBlocker
from rest_framework.test import APIClient

from allocations.domain.objects import Snapshot
from allocations.lifecycle import spec_of_row, transitions
from allocations.lifecycle.modes import hold
from allocations.models import Allocation
from allocations.reconcile import recovery
from portal.core import clock
from portal.core.errors import Refused
from portal.tenants.models import User
from quotas.costs import ledger
from quotas.limits import history
from quotas.limits.tree import Quota
from tests.support import upgrade
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate
from tests.support.observed import quotas_listed
from tests.support.upgrade import NOON

HOUR = timedelta(hours=1)
URL = "/api/v1/allocations"


@pytest.fixture(scope="module")
def upgraded(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Let Django use the dump, migrated."""
    with django_db_blocker.unblock(), upgrade.upgraded(upgrade.RELEASE):
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
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {upgrade.token()}")
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


def test_what_is_held_keeps_its_end_and_what_waits_its_hours() -> None:
    held, waiting = reconciled("held"), reconciled("waiting")
    assert (held.hours, held.held_since, held.ends_at) == (Decimal(8), NOON, NOON + 8 * HOUR)
    assert (waiting.hours, waiting.give_up_at, waiting.ends_at) == (Decimal("1.5"), NOON + timedelta(days=7), None)


def test_what_was_held_is_charged_as_before() -> None:
    [sums] = ledger.sums([NOON, NOON + HOUR], ["flavor"], {}, clock.now())
    assert (sums.names, sums.usage.gpu_hours) == (("l40s",), Fraction(1))


def test_the_history_of_quotas_and_departments_is_kept() -> None:
    [period] = history.periods(LOCAL, clock.now(), clock.now() + timedelta(days=1))
    assert period.parents == {"dept-research": None, "team-vision": "dept-research"}
    assert {pool: dict(quotas) for pool, quotas in period.quotas.items()} == {
        "l40s/gpu": {"team-vision": Quota(4, 0, None)},
        "h100/gpu": {"team-vision": Quota(2, 0, None)},
    }


def test_an_old_token_works_and_shows_old_allocations(api: APIClient) -> None:
    answer = api.get(URL)
    assert answer.status_code == 200
    ends = {one["name"]: (one["phase"], one["hours"], one["ends_at"]) for one in answer.json()["results"]}
    assert ends == {
        "held": ("active", "8.000000", "2026-11-23T20:00:00Z"),
        "waiting": ("queued", "1.500000", None),
        "over": ("ended", "8.000000", None),
    }


def test_an_old_token_asks_extends_and_releases(api: APIClient) -> None:
    asked = api.post(URL, {"project": "vision-train", "offering": "l40s/whole", "hours": 2}, format="json")
    assert (asked.status_code, asked.json()["hours"]) == (201, "2.000000")
    held = api.post(f"{URL}/{row('held').pk}/extend", {"hours": 2}, format="json").json()
    assert (held["hours"], held["ends_at"]) == ("10.000000", "2026-11-23T22:00:00Z")
    assert api.post(f"{URL}/{row('waiting').pk}/release", {}, format="json").status_code == 200


def test_an_old_lease_without_a_row_is_made_again() -> None:
    quotas_listed(2)
    recovery.adopt(LOCAL, "vision-train")
    lost = row("lost")
    assert (lost.recovered, lost.hours, lost.held_before) == (True, Decimal(8), timedelta(0))


def test_the_name_of_what_had_ended_is_free_and_that_of_what_lives_is_not() -> None:
    ada = User.objects.get(username="ada")
    project = row("held").project
    assert allocate(ada, project, name="over", hours=Decimal(1)).name == "over"
    with pytest.raises(Refused, match="that has not ended"):
        allocate(ada, project, name="held")
