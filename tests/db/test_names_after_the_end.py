"""Names are free again after the end: what goes by name goes to the live allocation, and leases by the id they have."""

import json
from datetime import timedelta
from uuid import uuid4

import pytest

from allocations.cluster import kinds, names
from allocations.cluster.kinds import KINDS
from allocations.domain.allocation_spec import LeaseRecord
from allocations.domain.objects import Ref
from allocations.domain.observed_facts import workload_facts
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from allocations.reconcile import mirror, recovery
from allocations.reconcile.allocation import _name_is_of_another
from allocations.reconcile.enforcement.holds import holds
from allocations.reconcile.mirror_writer import record_observations
from portal.core import clock
from portal.core.errors import Refused
from portal.core.models import WorkItem
from quotas.metering.models import UsageInterval
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.observed import quotas_listed
from tests.support.pages import ended, held
from tests.support.people import person

pytestmark = pytest.mark.django_db
ADOPTION = f"{LOCAL}/adoption"


@pytest.fixture
def member(team):
    fleet(team)
    return person(team)


@pytest.fixture
def old(member, project) -> Allocation:
    return ended(allocate(member, project, name="train"))


@pytest.fixture
def new(old, member, project) -> Allocation:
    return allocate(member, project, name="train")


def record_of(row) -> str:
    again = spec_of_row.rows().get(pk=row.pk)
    return spec_of_row.record(again, spec_of_row.spec(again)).to_text()


def lost(row) -> str:
    """Lose the row, as a restore of an older backup does; return the record that its lease has."""
    record = record_of(row)
    Allocation.objects.filter(pk=row.pk).delete()
    return record


def see_lease(project, record) -> set[str]:
    """Let the watcher see the lease named train with this record; return the targets to be reconciled."""
    WorkItem.objects.all().delete()
    quotas_listed(7)
    raw = {
        "kind": "Workload",
        "metadata": {
            "name": names.lease("train"),
            "namespace": project.namespace,
            "uid": "u-lease",
            "resourceVersion": "7",
            "labels": {names.MANAGED: "true", names.ALLOCATION: "train"},
            "annotations": {names.REQUEST: record},
            "creationTimestamp": "2026-11-01T08:00:00Z",
        },
        "spec": {"podSets": []},
    }
    found = kinds.observe(KINDS["Workload"], raw, at=clock.now(), live=True)
    assert found is not None
    record_observations(LOCAL, [found])
    return set(WorkItem.objects.values_list("target", flat=True))


def lease_in_mirror(row):
    ref = Ref("Workload", row.project.namespace, names.lease(row.name))
    return mirror.of_allocations(LOCAL, row.project.namespace, [row]).get(ref)


def test_a_name_is_free_again_after_the_end(old, new):
    assert (old.name, new.name) == ("train", "train")


def test_of_what_has_not_ended_a_name_is_one_allocations(new, member, project):
    with pytest.raises(Refused, match="that has not ended") as refusal:
        allocate(member, project, name="train")
    assert refusal.value.reason == "name_taken"


def test_what_is_seen_under_a_name_concerns_the_live_allocation(old, new, project):
    targets = see_lease(project, record_of(new))
    assert f"{LOCAL}/allocation:{new.pk}" in targets
    assert f"{LOCAL}/allocation:{old.pk}" not in targets
    assert ADOPTION not in targets


def test_what_is_seen_under_a_name_that_nobody_has_now_concerns_who_had_it_last(old, member, project):
    last = ended(allocate(member, project, name="train"))
    targets = see_lease(project, record_of(last))
    assert f"{LOCAL}/allocation:{last.pk}" in targets
    assert f"{LOCAL}/allocation:{old.pk}" not in targets


def test_a_lost_allocation_is_made_again_although_its_name_was_anothers_before(old, new, project):
    targets = see_lease(project, lost(new))
    assert ADOPTION in targets
    recovery.adopt(LOCAL, project.namespace)
    assert Allocation.objects.get(name="train", ended_at=None).recovered


def test_the_lease_of_an_allocation_that_has_ended_is_not_adopted(old, project):
    assert ADOPTION not in see_lease(project, record_of(old))
    recovery.adopt(LOCAL, project.namespace)
    assert not Allocation.objects.filter(ended_at=None).exists()


def test_what_was_charged_to_who_had_the_name_is_handed_over(old, new, project):
    """While the row was lost, the watcher saw the slices held under its name."""
    record = lost(new)
    held(old)
    Allocation.objects.filter(pk=old.pk).update(phase="ended")
    see_lease(project, record)
    recovery.adopt(LOCAL, project.namespace)
    [interval] = UsageInterval.objects.filter(holder_id=old.pk)
    assert (interval.end, interval.estimated_end) == (interval.start, True)


def test_one_that_has_ended_leaves_the_objects_of_its_name_to_the_live_one(old, new):
    assert _name_is_of_another(old, None)


def test_one_that_has_ended_leaves_the_objects_of_a_lost_one_alone(old, new, project):
    see_lease(project, lost(new))
    assert _name_is_of_another(old, lease_in_mirror(old))


def test_one_that_has_ended_cleans_up_what_is_seen_of_it_later(old, project):
    see_lease(project, record_of(old))
    assert not _name_is_of_another(old, lease_in_mirror(old))


def test_a_lost_lease_reserves_although_its_name_was_anothers_before(old, new, project):
    see_lease(project, lost(new))
    assert [one.name for one in holds(LOCAL, mirror.of_kinds(LOCAL, "Workload"))] == ["train"]


@pytest.fixture
def superseded(member, project) -> Allocation:
    """A live row after a restore: its end was lost, and so was the later allocation that has its name now."""
    row = held(allocate(member, project, name="train"), hours=3)
    later = {"id": str(uuid4()), "created_at": (clock.now() - timedelta(hours=1)).isoformat()}
    see_lease(project, json.dumps({**json.loads(record_of(row)), **later, "count": 2}))
    return spec_of_row.rows().get(pk=row.pk)


def test_one_whose_name_a_lost_allocation_has_ends_when_that_one_was_requested(superseded):
    lease = lease_in_mirror(superseded)
    assert recovery.end_if_superseded(superseded, lease, {})
    row = Allocation.objects.get(pk=superseded.pk)
    assert (row.phase, row.outcome, row.reason) == ("ended", "released", "name_recovered")
    [interval] = UsageInterval.objects.filter(holder_id=row.pk)
    assert interval.end == LeaseRecord.from_text(workload_facts(lease)["record"]).created_at


def test_the_lost_allocation_is_recovered_under_the_name(superseded, project):
    WorkItem.objects.all().delete()
    assert recovery.end_if_superseded(superseded, lease_in_mirror(superseded), {})
    assert WorkItem.objects.filter(target=ADOPTION).exists()
    recovery.adopt(LOCAL, project.namespace)
    row = Allocation.objects.get(name="train", ended_at=None)
    assert (row.recovered, row.count) == (True, 2)


def test_one_that_was_requested_before_the_lost_allocation_was_recovered_is_cancelled(member, project):
    record = json.loads(lost(allocate(member, project, name="train")))
    row = spec_of_row.rows().get(pk=allocate(member, project, name="train").pk)
    see_lease(project, json.dumps(record))
    assert recovery.end_if_superseded(row, lease_in_mirror(row), {})
    assert Allocation.objects.get(pk=row.pk).outcome == "cancelled"


def test_the_lease_of_one_that_has_ended_ends_no_other(old, new, project):
    see_lease(project, record_of(old))
    row = spec_of_row.rows().get(pk=new.pk)
    assert not recovery.end_if_superseded(row, lease_in_mirror(row), {})


def test_a_live_allocation_keeps_its_own_lease(new, project):
    see_lease(project, record_of(new))
    row = spec_of_row.rows().get(pk=new.pk)
    assert not recovery.end_if_superseded(row, lease_in_mirror(row), {})


def test_of_a_name_that_a_lost_allocation_has_its_lease_counts_and_not_the_live_row(superseded):
    [hold] = holds(LOCAL, mirror.of_kinds(LOCAL, "Workload"))
    assert hold.id == "u-lease"


def test_the_lease_of_one_that_has_ended_reserves_nothing(old, project):
    see_lease(project, record_of(old))
    assert holds(LOCAL, mirror.of_kinds(LOCAL, "Workload")) == []
