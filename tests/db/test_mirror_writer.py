"""The watcher's events update mirror, ledger and work queue in one transaction: repeated, late or listed, one
result.
"""

from datetime import datetime, timedelta
from typing import Any

import pytest

from allocations.cluster import kinds, names
from allocations.cluster.errors import StoreRestored
from allocations.cluster.kinds import KINDS
from allocations.domain.actions import Action, Delete, DesiredState, digest
from allocations.domain.objects import Ref
from allocations.models import Allocation, AppliedObject, MirrorObject, WatchState
from allocations.reconcile import mirror
from allocations.reconcile.batch_state import MAX_UNWRITTEN
from allocations.reconcile.engine.applied import applied_objects
from allocations.reconcile.engine.plan import DELETED, apply_reason, plan
from allocations.reconcile.mirror_writer import record_list, record_observations, reset_revisions
from portal.core import clock
from portal.core.models import WorkItem
from portal.workqueue.targets import Target
from quotas.metering.models import UsageInterval
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.observed import DEVICES, T0, at, claim, hold, hold_quota, holder, raw, seen
from tests.support.people import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def row(team, project) -> Allocation:
    fleet(team)
    made = allocate(person(team), project, "h100/whole", name="train")
    WorkItem.objects.all().delete()
    return made


def intervals() -> list[tuple[str, datetime, datetime | None, bool, bool]]:
    rows = UsageInterval.objects.order_by("start")
    return [(i.slot, i.start, i.end, i.estimated_start, i.estimated_end) for i in rows]


def test_a_hold_begins_when_claim_and_holder_both_show_it(row: Allocation) -> None:
    first, second = hold(row, 5)
    record_observations(LOCAL, [first])
    assert intervals() == []
    record_observations(LOCAL, [second])
    assert intervals() == [("local/h100-0/gpu-1", at(5), None, False, False)]


def test_what_is_seen_again_changes_nothing(row: Allocation) -> None:
    batch = hold(row)
    record_observations(LOCAL, batch)
    WorkItem.objects.all().delete()
    assert record_observations(LOCAL, batch) == 0
    assert len(intervals()) == 1
    assert not WorkItem.objects.exists()


def test_what_is_older_than_the_mirror_changes_nothing(row: Allocation) -> None:
    record_observations(LOCAL, hold(row, revision=10))
    assert record_observations(LOCAL, [seen(claim(row, 9, []), 60)]) == 0
    assert intervals()[0][2] is None


def test_of_an_object_that_changes_twice_in_a_batch_the_last_form_is_in_the_mirror(row: Allocation) -> None:
    record_observations(LOCAL, [seen(claim(row, 10, []), 0), seen(claim(row, 11, DEVICES), 1)])
    found = MirrorObject.objects.get()
    assert (found.resource_version, found.seen_at, found.facts["devices"] != []) == (11, at(1), True)
    assert record_observations(LOCAL, [seen(claim(row, 12, DEVICES), 2)]) == 0


def test_of_an_object_that_goes_and_comes_again_in_a_batch_the_new_one_is_in_the_mirror(row: Allocation) -> None:
    record_observations(LOCAL, [seen(claim(row, 10, DEVICES), 0)])
    again = claim(row, 12, [])
    again["metadata"]["uid"] = "made-again"
    record_observations(LOCAL, [seen(claim(row, 11, DEVICES), 1, gone=True), seen(again, 2)])
    assert MirrorObject.objects.values_list("uid", "resource_version").get() == ("made-again", 12)
    record_observations(LOCAL, [seen(again, 3), seen({**again, "status": {}}, 4, gone=True)])
    assert not MirrorObject.objects.exists()


def test_a_batch_of_more_objects_than_are_written_at_once_is_in_the_mirror_whole(row: Allocation) -> None:
    bodies = [raw("LocalQueue", row, f"queue-{number}", 10 + number) for number in range(2 * MAX_UNWRITTEN + 1)]
    assert record_observations(LOCAL, [seen(body, 0) for body in bodies]) == len(bodies)
    assert MirrorObject.objects.filter(kind="LocalQueue").count() == len(bodies)


def test_the_positions_of_watches_are_recorded_with_a_batch(row: Allocation) -> None:
    reached = [(KINDS["Pod"], 12, at(2)), (KINDS["ResourceClaim"], 10, at(1))]
    record_observations(LOCAL, [seen(claim(row, 10, []), 0)], positions=reached)
    record_observations(LOCAL, [seen(claim(row, 11, []), 3)], positions=[(KINDS["Pod"], 14, at(3))])
    found = WatchState.objects.order_by("kind").values_list("kind", "resource_version", "synced_at")
    assert list(found) == [("Pod", 14, at(3)), ("ResourceClaim", 10, at(1))]


def test_a_hold_ends_when_its_claim_is_no_longer_allocated_not_when_its_holder_goes(row: Allocation) -> None:
    record_observations(LOCAL, hold(row))
    record_observations(LOCAL, [seen(holder(row, 20), 30, gone=True)])
    assert intervals()[0][2] is None
    record_observations(LOCAL, [seen(claim(row, 21, []), 31)])
    assert intervals()[0][2:] == (at(31), False, False)


def test_an_end_that_nobody_saw_is_the_last_sighting(row: Allocation) -> None:
    record_list(LOCAL, KINDS["ResourceClaim"], [seen(claim(row, 10, DEVICES), 0)], 12, at(0))
    record_list(LOCAL, KINDS["Pod"], [seen(holder(row, 11), 0)], 12, at(0))
    record_list(LOCAL, KINDS["ResourceClaim"], [], 90, at(600))
    assert [(end, estimated) for _, _, end, _, estimated in intervals()] == [(at(0), True)]


@pytest.fixture
def listed(row: Allocation) -> Allocation:
    """Record a hold as lists at revisions 1000 and 1002 have it."""
    record_list(LOCAL, KINDS["ResourceClaim"], [seen(claim(row, 1000, DEVICES), 0)], 1000, at(0))
    record_list(LOCAL, KINDS["Pod"], [seen(holder(row, 1001), 0)], 1002, at(0))
    return row


@pytest.mark.parametrize(("revision", "of_list"), [(500, 510), (500, 999), (500, 1_000_000_510)])
def test_a_list_that_is_older_than_the_mirror_is_not_recorded(listed: Allocation, revision: int, of_list: int) -> None:
    """By the list's revision or, if etcd's revisions continue above all former ones, by the revision of one
    object.
    """
    with pytest.raises(StoreRestored):
        record_list(LOCAL, KINDS["ResourceClaim"], [seen(claim(listed, revision, []), 60, live=False)], of_list, at(60))
    assert MirrorObject.objects.get(kind="ResourceClaim").resource_version == 1000
    assert intervals()[0][2] is None


def test_when_etcd_came_back_from_a_backup_what_is_left_is_recorded_and_what_is_lost_ends(listed: Allocation) -> None:
    reset_revisions(LOCAL)
    record_list(LOCAL, KINDS["ResourceClaim"], [seen(claim(listed, 500, []), 60, live=False)], 510, at(60))
    record_list(LOCAL, KINDS["Pod"], [], 511, at(60))
    assert [(end, estimated) for _, _, end, _, estimated in intervals()] == [(at(0), True)]
    assert list(MirrorObject.objects.values_list("kind", "resource_version")) == [("ResourceClaim", 500)]
    record_observations(LOCAL, hold(listed, 70, revision=520))
    assert intervals()[1][1:3] == (at(70), None)


def test_when_etcd_came_back_from_a_backup_what_is_still_held_is_charged_on(listed: Allocation) -> None:
    reset_revisions(LOCAL)
    record_list(LOCAL, KINDS["Pod"], [seen(holder(listed, 501), 60, live=False)], 511, at(60))
    record_list(LOCAL, KINDS["ResourceClaim"], [seen(claim(listed, 500, DEVICES), 60, live=False)], 510, at(60))
    assert intervals() == [("local/h100-0/gpu-1", at(0), None, False, False)]


def test_a_hold_that_a_backup_brought_back_is_charged_from_when_it_is_found(row: Allocation) -> None:
    record_observations(LOCAL, hold(row, 0, revision=1000))
    record_observations(LOCAL, [seen(claim(row, 1100, []), 30, gone=True), seen(holder(row, 1101), 30, gone=True)])
    reset_revisions(LOCAL)
    found = at(3600)
    with clock.frozen(found):
        record_list(LOCAL, KINDS["ResourceClaim"], [seen(claim(row, 1000, DEVICES), 3600, live=False)], 1050, found)
        record_list(LOCAL, KINDS["Pod"], [seen(holder(row, 1001), 3600, live=False)], 1050, found)
    assert [times for _, *times in intervals()] == [[at(0), at(30), False, False], [found, None, True, False]]


def test_a_hold_that_a_backup_brought_back_is_charged_from_when_it_is_found_whichever_holder_it_had(
    row: Allocation,
) -> None:
    """The holder was deleted and created again before the backup, so the ledger knows its hold by the first one."""
    record_observations(LOCAL, hold(row, 0, revision=1000))
    again = holder(row, 1050)
    again["metadata"]["uid"] = "made-again"
    record_observations(LOCAL, [seen(holder(row, 1040), 10, gone=True), seen(again, 11)])
    record_observations(LOCAL, [seen(claim(row, 1100, []), 30, gone=True), seen(again, 30, gone=True)])
    reset_revisions(LOCAL)
    found = at(3600)
    with clock.frozen(found):
        record_list(LOCAL, KINDS["ResourceClaim"], [seen(claim(row, 1000, DEVICES), 3600, live=False)], 1060, found)
        record_list(LOCAL, KINDS["Pod"], [seen(again, 3600, live=False)], 1060, found)
    assert [times for _, *times in intervals()] == [[at(0), at(30), False, False], [found, None, True, False]]


def test_after_a_restore_nothing_is_known_of_an_object_until_its_kind_is_listed(listed: Allocation) -> None:
    ref = Ref("ResourceClaim", listed.project.namespace, listed.name)
    there = {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name, "uid": f"ResourceClaim-{listed.name}"}
    AppliedObject.objects.create(
        cluster_id=LOCAL, target="t", **there, intent="i", digest="d", resource_version=1000, applied_at=T0
    )
    wanted = {"kind": ref.kind, "metadata": {"namespace": ref.namespace, "name": ref.name}}
    AppliedObject.objects.update(intent=digest(wanted))

    def why() -> str:
        return apply_reason(
            wanted, mirror.of_allocations(LOCAL, ref.namespace, [listed]), applied_objects(Target("t"))[ref]
        )

    assert why() == "edited"
    reset_revisions(LOCAL)
    assert why() == ""
    record_list(LOCAL, KINDS["ResourceClaim"], [seen(claim(listed, 500, DEVICES), 60, live=False)], 510, at(60))
    assert why() == "edited"
    record_list(LOCAL, KINDS["ResourceClaim"], [], 520, at(70))
    assert why() == "deleted"


def test_after_a_restore_a_deletion_that_was_under_way_is_asked_for_again(listed: Allocation) -> None:
    ref = Ref("ResourceClaim", listed.project.namespace, listed.name)
    uid = f"ResourceClaim-{listed.name}"
    there = {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name, "uid": uid}
    AppliedObject.objects.create(
        cluster_id=LOCAL, target="t", **there, intent=DELETED, digest="d", resource_version=1000, applied_at=T0
    )

    def actions() -> list[Action]:
        view = mirror.of_allocations(LOCAL, ref.namespace, [listed])
        return plan(DesiredState(unwanted=[[ref]]), view, applied_objects(Target("t")))

    assert actions() == []
    reset_revisions(LOCAL)
    record_list(LOCAL, KINDS["ResourceClaim"], [seen(claim(listed, 500, DEVICES), 60, live=False)], 510, at(60))
    assert actions() == [Delete(ref, uid)]


def test_a_beginning_that_nobody_saw_is_what_the_cluster_says(row: Allocation) -> None:
    """Its claim was last seen without devices two minutes before."""
    record_observations(LOCAL, hold(row, -120, live=False))
    assert intervals() == [("local/h100-0/gpu-1", T0 - timedelta(minutes=1), None, True, False)]


def test_a_device_that_changes_hands_is_never_billed_twice(row: Allocation, team, project) -> None:
    other = allocate(person(team), project, "h100/whole", name="next")
    record_observations(LOCAL, hold(row))
    record_observations(LOCAL, [seen(claim(row, 20, []), 40), *hold(other, 40.5, revision=21)])
    assert [(start, end) for _, start, end, _, _ in intervals()] == [(at(0), at(40)), (at(40.5), None)]


def test_a_hold_whose_label_was_taken_off_and_put_back_is_billed_on(row: Allocation) -> None:
    record_observations(LOCAL, hold(row))
    bare = claim(row, 20, DEVICES)
    bare["metadata"]["labels"] = {}
    record_observations(LOCAL, [seen(bare, 40)])
    record_observations(LOCAL, [seen(claim(row, 21, DEVICES), 41)])
    record_observations(LOCAL, [seen(claim(row, 22, DEVICES), 42)])
    assert [(start, end) for _, start, end, _, _ in intervals()] == [(at(0), at(40)), (at(40), None)]


def spread_slice(row: Allocation, number: int, revision: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return claim and holder of one slice of an allocation whose slices may spread."""
    name = names.claim_of_slice(row.name, number)
    devices = [{**DEVICES[0], "request": names.slice_request(number), "device": f"gpu-{number}"}]
    allocation = {"devices": {"results": devices}, "allocationTimestamp": "2026-11-02T11:59:00Z"}
    claim_body = raw("ResourceClaim", row, name, revision, status={"allocation": allocation})
    spec = {"nodeName": "h100-0", "containers": [], "resourceClaims": [{"name": "g", "resourceClaimName": name}]}
    pod = raw("Pod", row, names.holder(name), revision + 1, spec=spec, status={"phase": "Running"})
    for body in (claim_body, pod):
        body["metadata"]["uid"] += f"-{number}"
    return claim_body, pod


def bare(body: dict[str, Any], revision: int) -> dict[str, Any]:
    """Return the object after somebody took off its labels."""
    return {**body, "metadata": {**body["metadata"], "labels": {}, "resourceVersion": str(revision)}}


def test_a_hold_ends_with_its_label_in_a_batch_that_shows_it_otherwise(row: Allocation) -> None:
    record_observations(LOCAL, hold(row))
    batch = [seen(holder(row, 20), 39), seen(bare(claim(row, 21, DEVICES), 21), 40), seen(holder(row, 22), 41)]
    record_observations(LOCAL, batch)
    assert [(start, end) for _, start, end, _, _ in intervals()] == [(at(0), at(40))]


def test_of_two_slices_one_stays_charged_in_a_batch_that_names_their_allocation_by_its_lease(
    row: Allocation, team, project
) -> None:
    both = allocate(person(team), project, "h100/whole", 2, name="both", constraints={"spread": True})
    slices = [spread_slice(both, number, 10 + 2 * number) for number in range(2)]
    record_observations(LOCAL, [seen(body, 0) for bodies in slices for body in bodies])
    assert [end for *_, end, _, _ in intervals()] == [None, None]
    lease, other = raw("Workload", both, f"{both.name}-lease", 5), claim(row, 29, [])
    record_observations(LOCAL, [seen(lease, 38), seen(other, 39), seen(bare(slices[0][0], 30), 40)])
    assert sorted((slot, end) for slot, _, end, _, _ in intervals()) == [
        ("local/h100-0/gpu-0", at(40)),
        ("local/h100-0/gpu-1", None),
    ]


def test_an_event_about_an_allocation_has_it_looked_at(row: Allocation) -> None:
    record_observations(LOCAL, [seen(claim(row, 10, []), 0)])
    assert set(WorkItem.objects.values_list("target", flat=True)) == {f"local/allocation:{row.pk}"}


def test_an_allocation_is_looked_at_once_the_quota_that_its_reconcile_wrote_no_longer_lists_it(team, project) -> None:
    """Nothing else may follow: the quota's status never showed it, so no interval ends, and its lease went before."""
    fleet(team)
    row = allocate(person(team), project, "l40s/whole", name="train")
    Allocation.objects.filter(pk=row.pk).update(number=0)
    row.refresh_from_db()
    listed, emptied = hold_quota(row, 30), hold_quota(row, 31, listed=False)
    listed["status"] = {}
    record_observations(LOCAL, [seen(listed, 0)])
    WorkItem.objects.all().delete()
    AppliedObject.objects.create(
        cluster_id=LOCAL,
        target="local/project:vision-train",
        kind="ResourceQuota",
        namespace=row.project.namespace,
        name=emptied["metadata"]["name"],
        uid=emptied["metadata"]["uid"],
        resource_version=31,
        digest=seen(emptied, 1).digest,
        applied_at=T0,
    )
    record_observations(LOCAL, [seen(emptied, 1)])
    assert set(WorkItem.objects.values_list("target", flat=True)) == {f"local/allocation:{row.pk}"}


def test_a_lease_without_a_row_has_adoption_looked_at(row: Allocation) -> None:
    lease = raw("Workload", row, names.lease("lost"), 5, spec={}, status={})
    lease["metadata"]["labels"][names.ALLOCATION] = "lost"
    record_observations(LOCAL, [seen(lease, 0)])
    assert set(WorkItem.objects.values_list("target", flat=True)) == {"local/adoption"}


def test_pods_without_gpus_are_not_remembered(row: Allocation) -> None:
    plain = {"kind": "Pod", "metadata": {"name": "web", "namespace": "x", "uid": "1", "resourceVersion": "1"}}
    assert kinds.observe(KINDS["Pod"], plain | {"spec": {"containers": []}}, at=T0, live=True) is None
    assert not MirrorObject.objects.exists()


def test_queries_of_a_batch_without_news_do_not_grow(row: Allocation, django_assert_max_num_queries) -> None:
    nodes: list[dict[str, Any]] = [
        {
            "kind": "Node",
            "metadata": {
                "name": f"n{n}",
                "uid": f"n{n}",
                "resourceVersion": "5",
                "labels": {"nvidia.com/gpu.present": "true"},
            },
            "status": {"allocatable": {"nvidia.com/gpu": "4"}},
        }
        for n in range(50)
    ]
    record_observations(LOCAL, [seen(node, 0) for node in nodes])
    later = [{**node, "metadata": {**node["metadata"], "resourceVersion": "6"}} for node in nodes]
    with django_assert_max_num_queries(4):
        record_observations(LOCAL, [seen(node, 1) for node in later])


def test_who_keeps_an_object_hears_that_it_came_and_went_in_one_batch(row: Allocation) -> None:
    walls = raw("NetworkPolicy", row, "gpu-portal", 30)
    del walls["metadata"]["labels"][names.ALLOCATION]
    AppliedObject.objects.create(
        cluster_id=LOCAL,
        target="local/project:vision-train",
        kind="NetworkPolicy",
        namespace=row.project.namespace,
        name="gpu-portal",
        uid=walls["metadata"]["uid"],
        resource_version=30,
        applied_at=T0,
    )
    later = {**walls, "metadata": {**walls["metadata"], "resourceVersion": "31"}}
    record_observations(LOCAL, [seen(walls, 0), seen(later, 0.1, gone=True)])
    assert set(WorkItem.objects.values_list("target", flat=True)) == {"local/project:vision-train"}


def test_the_catalogue_hears_of_foreign_use_that_a_list_no_longer_has(row: Allocation) -> None:
    pod = raw("Pod", row, "stranger", 5, status={"phase": "Running"})
    pod["metadata"]["labels"] = {}
    pod["spec"] = {"nodeName": "l40s-0", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    record_observations(LOCAL, [seen(pod, 0)])
    WorkItem.objects.all().delete()
    record_list(LOCAL, KINDS["Pod"], [], 9, at(1))
    assert set(WorkItem.objects.values_list("target", flat=True)) == {"local/usage"}


def test_who_keeps_an_object_hears_from_a_list_that_it_went_unseen(row: Allocation) -> None:
    AppliedObject.objects.create(
        cluster_id=LOCAL,
        target=f"local/allocation:{row.pk}",
        kind="Workload",
        namespace=row.project.namespace,
        name="train-lease",
        uid="1",
        resource_version=30,
        applied_at=T0,
    )
    record_list(LOCAL, KINDS["Workload"], [], 29, at(0))
    assert not WorkItem.objects.exists()
    record_list(LOCAL, KINDS["Workload"], [], 31, at(1))
    assert set(WorkItem.objects.values_list("target", flat=True)) == {f"local/allocation:{row.pk}"}
