"""Holds whose start nobody watched: of a count the cluster has only the time at which its lease was admitted."""

from datetime import datetime
from typing import Any

import pytest

from allocations.cluster import names
from allocations.cluster.kinds import KINDS
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, MirrorObject
from allocations.reconcile import mirror
from allocations.reconcile.metering import ledger
from allocations.reconcile.mirror_writer import record_list, record_observations, record_sync, reset_revisions
from portal.core import clock
from portal.tenants.models import Project, Team, User
from quotas.metering.models import UsageInterval
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.observed import DEVICES, at, claim, hold, hold_quota, seen

pytestmark = pytest.mark.django_db
QUOTA = KINDS["ResourceQuota"]
BACK = 600.0
"""When the watcher lists the cluster again."""


@pytest.fixture(autouse=True)
def noon(team: Team, project: Project) -> Any:
    fleet(team)
    with clock.frozen(at(BACK)):
        yield


@pytest.fixture
def train(member: User, project: Project) -> Allocation:
    return allocate(member, project, name="train")


def admitted(row: Allocation, second: float) -> None:
    """Mirror the lease of the allocation, admitted then."""
    facts = {"conditions": {"Admitted": {"status": "True", "at": at(second).isoformat()}}, "cluster_queue": "team"}
    key: dict[str, Any] = {
        "cluster_id": LOCAL,
        "kind": "Workload",
        "namespace": row.project.namespace,
        "name": names.lease(row.name),
    }
    values = {"uid": "lease", "resource_version": 1, "allocation": row.name, "facts": facts, "seen_at": at(second)}
    MirrorObject.objects.update_or_create(**key, defaults=values)


def watched_until(second: float) -> None:
    """Record that the mirror of quotas was complete then."""
    record_sync(LOCAL, (QUOTA, 1, at(second)))


def list_quotas(*bodies: dict[str, Any], revision: int = 20) -> None:
    record_list(LOCAL, QUOTA, [seen(body, BACK, live=False) for body in bodies], revision, at(BACK))


def starts() -> list[tuple[datetime, bool]]:
    return list(UsageInterval.objects.order_by("start").values_list("start", "estimated_start"))


def test_a_count_that_began_in_an_outage_starts_no_earlier_than_the_outage(train: Allocation) -> None:
    admitted(train, 50)
    watched_until(97)
    list_quotas(hold_quota(train, 12))
    assert starts() == [(at(97), True)]


def test_a_count_that_was_admitted_in_an_outage_starts_at_its_admission(train: Allocation) -> None:
    watched_until(97)
    admitted(train, 120)
    list_quotas(hold_quota(train, 12))
    assert starts() == [(at(120), True)]


def test_a_count_that_came_into_force_in_an_outage_starts_when_the_cluster_says_so(train: Allocation) -> None:
    admitted(train, 50)
    watched_until(97)
    list_quotas(hold_quota(train, 12, written=217))
    assert starts() == [(at(217), True)]


def test_a_count_whose_quota_was_written_before_the_outage_starts_no_earlier_than_the_outage(train: Allocation) -> None:
    admitted(train, 50)
    watched_until(97)
    list_quotas(hold_quota(train, 12, written=60))
    assert starts() == [(at(97), True)]


def test_what_pods_use_of_a_quota_does_not_change_when_it_came_into_force(train: Allocation) -> None:
    record_observations(LOCAL, [seen(hold_quota(train, 11, written=60), 61)])
    record_observations(LOCAL, [seen(hold_quota(train, 12, written=400), 401)])
    assert MirrorObject.objects.get(kind=QUOTA.name).facts["shown_at"] == at(60).isoformat()


def test_a_quota_seen_without_the_count_is_a_sighting_too(train: Allocation) -> None:
    admitted(train, 50)
    record_observations(LOCAL, [seen(hold_quota(train, 11, listed=False), 60)])
    watched_until(97)
    list_quotas(hold_quota(train, 12))
    assert starts() == [(at(97), True)]


def test_a_count_that_a_broken_watch_missed_starts_no_earlier_than_its_last_contact(train: Allocation) -> None:
    admitted(train, 50)
    record_observations(LOCAL, [seen(hold_quota(train, 12), 83, live=False)])
    assert starts() == [(at(83), True)]


def test_the_first_list_of_a_cluster_has_no_earlier_sighting(train: Allocation) -> None:
    admitted(train, 50)
    list_quotas(hold_quota(train, 12))
    assert starts() == [(at(50), True)]


def test_a_count_that_was_watched_starts_when_it_was_seen(train: Allocation) -> None:
    admitted(train, 50)
    watched_until(97)
    record_observations(LOCAL, [seen(hold_quota(train, 12), 100)])
    assert starts() == [(at(100), False)]


def test_a_count_that_was_held_before_an_outage_goes_on(train: Allocation) -> None:
    """As it does after a restore of the database from a backup that has it."""
    admitted(train, 50)
    record_observations(LOCAL, [seen(hold_quota(train, 12), 60)])
    watched_until(97)
    list_quotas(hold_quota(train, 30), revision=40)
    assert starts() == [(at(60), False)]


def test_a_count_that_the_mirror_had_before_an_outage_and_the_ledger_not_starts_at_its_admission(
    train: Allocation,
) -> None:
    """Nothing says that it was not held then."""
    admitted(train, 50)
    record_observations(LOCAL, [seen(hold_quota(train, 12), 60)])
    UsageInterval.objects.all().delete()
    watched_until(97)
    quota = hold_quota(train, 30)
    for part in (quota["spec"], quota["status"]):
        part["hard"] |= {"requests.nvidia.com/other": "0"}
    list_quotas(quota, revision=40)
    assert starts() == [(at(50), True)]


def test_the_repair_of_a_count_starts_it_at_its_admission(train: Allocation) -> None:
    """As that of a row that was recovered after a restore of the database."""
    admitted(train, 50)
    record_observations(LOCAL, [seen(hold_quota(train, 12), 60)])
    UsageInterval.objects.all().delete()
    rows = list(spec_of_row.rows().filter(pk=train.pk))
    ledger.open_held(rows, mirror.of_allocations(LOCAL, train.project.namespace, rows), at=clock.now())
    assert starts() == [(at(50), True)]


def test_a_count_after_a_restore_of_etcd_starts_no_earlier_than_the_last_sighting(train: Allocation) -> None:
    admitted(train, 50)
    watched_until(97)
    reset_revisions(LOCAL)
    list_quotas(hold_quota(train, 12))
    assert starts() == [(at(97), True)]


def test_devices_start_no_earlier_than_the_last_sighting_without_them(member: User, project: Project) -> None:
    """The claim says 60 s earlier, by the cluster's clock."""
    row = allocate(member, project, "h100/whole", name="devices")
    record_observations(LOCAL, hold(row, 0, live=False))
    assert starts() == [(at(0), True)]


@pytest.mark.parametrize(("admitted_at", "sighted", "began"), [(0, 10, 10), (20, 10, 20), (15, 15, 15)])
def test_an_estimated_start_is_within_the_outage_or_what_the_cluster_proves(
    train: Allocation, admitted_at: float, sighted: float, began: float
) -> None:
    watched_until(sighted)
    admitted(train, admitted_at)
    list_quotas(hold_quota(train, 12))
    assert starts() == [(at(began), True)]


def test_devices_of_a_claim_that_another_one_replaced_in_an_outage_are_not_charged_in_between(
    member: User, project: Project
) -> None:
    row = allocate(member, project, "h100/whole", name="devices")
    record_observations(LOCAL, hold(row, 0))
    record_sync(LOCAL, (KINDS["ResourceClaim"], 12, at(97)))
    again = claim(row, 30, DEVICES)
    again["metadata"]["uid"] = "another"
    again["status"]["allocation"]["allocationTimestamp"] = at(500).isoformat()
    record_list(LOCAL, KINDS["ResourceClaim"], [seen(again, BACK, live=False)], 40, at(BACK))
    found = UsageInterval.objects.order_by("start").values_list("start", "end", "estimated_start", "estimated_end")
    assert list(found) == [(at(0), at(97), False, True), (at(500), None, True, False)]
