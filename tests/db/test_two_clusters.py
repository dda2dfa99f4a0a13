"""Two clusters with the same node names, namespaces and allocation names: nothing is attributed to the wrong one."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from allocations.capacity import device_inventory, flavor_devices
from allocations.capacity.quota_usage import QuotaUsage
from allocations.capacity.snapshot import CapacitySnapshot
from allocations.cluster import names
from allocations.cluster.client import connect
from allocations.cluster.errors import ClusterUnavailable
from allocations.cluster.kinds import KINDS
from allocations.domain.allocation_spec import AllocationRequest
from allocations.domain.objects import Ref
from allocations.lifecycle import spec_of_row
from allocations.management.commands.watch import enqueue_everything
from allocations.models import Allocation, AppliedObject, LeaseExcess, MirrorObject, WatchEpoch, WatchState
from allocations.projects import archive
from allocations.queues import jobs, queue
from allocations.reconcile import etcd_monitor, mirror, watch_epoch
from allocations.reconcile.enforcement import lease_check
from allocations.reconcile.engine import apply, dispatch
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.metering import job_ledger, unbilled
from allocations.reconcile.mirror_writer import record_list, record_observations, record_sync, start_anew
from allocations.reconcile.recovery import reconcile_adoption
from allocations.requests import selectors, services
from portal.clusters import registry
from portal.clusters.models import Cluster
from portal.core import clock
from portal.core.errors import Invalid
from portal.core.models import WorkItem
from portal.tenants import services as tenants
from portal.tenants.models import Project, Team, User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog import services as catalog
from quotas.catalog.models import Node, Offering, Pool
from quotas.limits import services as limits
from quotas.metering.models import UsageInterval
from tests.support.claims import facts
from tests.support.clusters import LOCAL, make_cluster
from tests.support.fleet import allocate, fleet
from tests.support.observed import T0, at, claim, hold, holder, seen
from tests.support.people import person
from tests.support.queued import GPU

pytestmark = pytest.mark.django_db

FAR = "far"
BOTH = (LOCAL, FAR)
NAMESPACE = "vision-train"


@dataclass(frozen=True)
class Twin:
    """A cluster's fleet, its project in the namespace, and an allocation named train there."""

    project: Project
    row: Allocation
    flavors: dict[str, str]

    def offering(self, key: str) -> Offering:
        flavor, _, slice_ = key.partition("/")
        return Offering.objects.get(key=f"{self.flavors[flavor]}/{slice_}")


@pytest.fixture
def member(team: Team) -> User:
    return person(team)


@pytest.fixture
def twins(team: Team, project: Project, member: User) -> dict[str, Twin]:
    make_cluster(FAR)
    far = tenants.create_project(team, "vision-far", "Far away", cluster=FAR, namespace=NAMESPACE)
    found = {}
    for slug, home in ((LOCAL, project), (FAR, far)):
        made = fleet(team, slug=slug)
        flavors = {flavor.name.split("-")[0]: flavor.name for flavor in made.flavors.all()}
        row = allocate(member, home, f"{flavors['h100']}/whole", name="train")
        found[slug] = Twin(home, row, flavors)
    WorkItem.objects.all().delete()
    return found


def due() -> set[str]:
    return set(WorkItem.objects.values_list("target", flat=True))


def slots() -> set[str]:
    return set(UsageInterval.objects.filter(end=None).values_list("slot", flat=True))


def mirrored(cluster: str, kind: str, name: str, *, allocation: str = "", deleting: bool = False, **facts: Any) -> None:
    MirrorObject.objects.create(
        cluster_id=cluster,
        kind=kind,
        namespace=NAMESPACE if KINDS[kind].namespaced else "",
        name=name,
        uid=str(uuid4()),
        resource_version=7,
        allocation=allocation,
        deleting=deleting,
        facts=facts,
        seen_at=T0,
    )


def workload(cluster: str, uid: str, flavor: str) -> None:
    """Return a tenant's Job named train, with two GPUs of the flavor reserved in the team's queue."""
    mirrored(
        cluster,
        "Workload",
        "job-train",
        job={"name": "train", "uid": uid},
        created_at=T0.isoformat(),
        conditions={"QuotaReserved": {"status": "True", "at": T0.isoformat(), "reason": "", "message": ""}},
        cluster_queue="team-vision",
        usage={flavor: {GPU: 2}},
        asks={GPU: 2},
        priority=0,
        record="",
    )


def pod(cluster: str, job: str) -> None:
    bound: dict[str, Any] = {"node": "l40s-0", "gpus": {GPU: 2}, "phase": "Running", "scheduled_at": T0.isoformat()}
    mirrored(cluster, "Pod", "train-0", job=job, **bound)


def test_one_object_is_mirrored_for_each_and_goes_for_one_alone(twins: dict[str, Twin]) -> None:
    for cluster, twin in twins.items():
        record_observations(cluster, [seen(holder(twin.row, 11), 0)])
    record_observations(FAR, [seen(holder(twins[FAR].row, 20), 5, gone=True)])
    pods = MirrorObject.objects.filter(kind="Pod", namespace=NAMESPACE, name=names.holder("train"))
    assert list(pods.values_list("cluster", flat=True)) == [LOCAL]
    views = {cluster: mirror.of_allocations(cluster, NAMESPACE, [twins[cluster].row]) for cluster in BOTH}
    assert {cluster: len(list(view)) for cluster, view in views.items()} == {LOCAL: 1, FAR: 0}


def test_a_list_of_one_tells_nothing_of_what_is_in_the_other(twins: dict[str, Twin]) -> None:
    record_list(LOCAL, KINDS["Pod"], [seen(holder(twins[LOCAL].row, 900), 0)], 900, at(0))
    record_list(FAR, KINDS["Pod"], [seen(holder(twins[FAR].row, 11), 0)], 12, at(60))  # by another etcd's revisions
    record_list(FAR, KINDS["Pod"], [], 13, at(120))
    assert list(MirrorObject.objects.filter(kind="Pod").values_list("cluster", flat=True)) == [LOCAL]


def test_each_has_watch_positions_of_its_own(twins: dict[str, Twin]) -> None:
    record_sync(LOCAL, (KINDS["Workload"], 900, clock.now()))
    record_sync(FAR, (KINDS["Workload"], 12, clock.now() - timedelta(minutes=5)))
    start_anew(FAR)
    positions = WatchState.objects.values_list("cluster", "resource_version")
    assert dict(positions) == {LOCAL: 900, FAR: 0}
    mirror.require_recent(LOCAL)
    with pytest.raises(mirror.MirrorStale):
        mirror.require_recent(FAR)


def test_each_has_a_watcher_and_epochs_of_its_own(twins: dict[str, Twin]) -> None:
    epochs = [watch_epoch.begin(cluster) for cluster in (LOCAL, FAR, FAR)]
    assert epochs == [1, 1, 2]
    with watch_epoch.writing(LOCAL, 1), watch_epoch.writing(FAR, 2):
        assert WatchEpoch.objects.count() == 2
    with pytest.raises(watch_epoch.EpochOver), watch_epoch.writing(LOCAL, 2):
        pass


def test_the_same_device_is_held_in_both_and_each_hold_is_its_own_interval(twins: dict[str, Twin]) -> None:
    record_observations(FAR, hold(twins[FAR].row))
    assert slots() == {"far/h100-0/gpu-1"}
    assert due() == {f"far/allocation:{twins[FAR].row.pk}"}
    UsageInterval.objects.update(gpu_share_numerator=3, gpu_share_denominator=7)  # of a card that is cut there
    record_observations(LOCAL, hold(twins[LOCAL].row, revision=3))
    assert slots() == {"far/h100-0/gpu-1", "local/h100-0/gpu-1"}
    record_observations(FAR, [seen(claim(twins[FAR].row, 20, []), 30)])
    assert slots() == {"local/h100-0/gpu-1"}
    (interval,) = UsageInterval.objects.filter(end=None)
    assert (interval.cluster_id, interval.project, interval.flavor) == (LOCAL, "vision-train", "h100")
    assert interval.gpus == 1


def test_a_hold_takes_from_the_capacity_of_its_own_cluster_alone(twins: dict[str, Twin]) -> None:
    record_observations(FAR, hold(twins[FAR].row))
    offered = {cluster: twin.offering("h100/whole") for cluster, twin in twins.items()}
    assert {cluster: CapacitySnapshot().capacity(one).free for cluster, one in offered.items()} == {LOCAL: 4, FAR: 3}
    cards = flavor_devices.of_flavors([one.flavor for one in offered.values()])
    fits = {c: cards[one.flavor_id].total(flavor_devices.slice_shape(one)) for c, one in offered.items()}
    assert fits == {LOCAL: 4, FAR: 3}
    taken = {c: sorted(card.name for card in cards[one.flavor_id].cards if card.taken) for c, one in offered.items()}
    assert taken == {LOCAL: [], FAR: ["gpu-1"]}


def test_a_persons_claim_chooses_among_the_devices_of_its_own_cluster(twins: dict[str, Twin]) -> None:
    for number, published in enumerate(facts("h100", 1)):
        mirrored(FAR, "ResourceSlice", f"slice-{number}", **published)
    record_observations(FAR, hold(twins[FAR].row))
    fleets = {c: device_inventory.of_flavor(twin.offering("h100/whole").flavor).fleet for c, twin in twins.items()}
    assert {cluster: bool(fleet.devices) for cluster, fleet in fleets.items()} == {LOCAL: False, FAR: True}
    assert {cluster: len(fleet.taken) for cluster, fleet in fleets.items()} == {LOCAL: 0, FAR: 1}


def test_a_job_draws_on_the_quota_of_its_own_cluster_alone(team: Team, twins: dict[str, Twin]) -> None:
    workload(FAR, str(uuid4()), twins[FAR].flavors["l40s"])
    workload(LOCAL, str(uuid4()), twins[FAR].flavors["l40s"])  # whoever made a flavor of that name there
    pools = {cluster: Pool.objects.get(flavor__name=twin.flavors["l40s"]) for cluster, twin in twins.items()}
    used = {cluster: QuotaUsage().units_by_queue(pool)["team-vision"] for cluster, pool in pools.items()}
    assert used == {LOCAL: 0, FAR: 2}


def test_inventory_writes_the_nodes_of_its_own_cluster_alone(twins: dict[str, Twin]) -> None:
    reconcile_inventory(FAR)  # the mirror of which has no node
    present = Node.objects.filter(present=True).values_list("cluster", flat=True)
    assert set(present) == {LOCAL}
    assert not {target for target in due() if target.startswith("local/")}


def test_jobs_of_one_name_on_nodes_of_one_name_are_charged_in_their_own_cluster(twins: dict[str, Twin]) -> None:
    uids = {cluster: str(uuid4()) for cluster in BOTH}
    for cluster, uid in uids.items():
        workload(cluster, uid, twins[cluster].flavors["l40s"])
        pod(cluster, uid)
    assert {cluster: unbilled.jobs(cluster) for cluster in BOTH} == {c: {(NAMESPACE, uids[c])} for c in BOTH}
    unbilled.enqueue(FAR)
    assert due() == {"far/inventory"}
    charged = UsageInterval.objects.filter(end=None).values_list("cluster", "project", "flavor")
    for cluster, expected in ((FAR, 1), (LOCAL, 2)):
        job_ledger.repair(cluster, job_ledger.metered(cluster))
        assert charged.count() == expected
    flavors = {cluster: twin.flavors["l40s"] for cluster, twin in twins.items()}
    assert set(charged) == {(LOCAL, "vision-train", flavors[LOCAL]), (FAR, "vision-far", flavors[FAR])}


def test_a_hold_that_is_not_charged_is_looked_at_in_its_own_cluster_alone(twins: dict[str, Twin]) -> None:
    record_observations(LOCAL, hold(twins[LOCAL].row))
    assert {cluster: unbilled.allocations(cluster) for cluster in BOTH} == {LOCAL: set(), FAR: set()}
    record_observations(FAR, hold(twins[FAR].row))
    UsageInterval.objects.filter(cluster=FAR).delete()
    WorkItem.objects.all().delete()
    for cluster in BOTH:
        unbilled.enqueue(cluster)
    assert due() == {f"far/allocation:{twins[FAR].row.pk}"}


def test_a_job_on_a_flavor_of_another_cluster_shows_no_offering_of_it(twins: dict[str, Twin]) -> None:
    for cluster in BOTH:
        workload(cluster, str(uuid4()), twins[FAR].flavors["l40s"])
    listed = {cluster: jobs.read(jobs.rows(Project.objects.filter(cluster=cluster))) for cluster in BOTH}
    shown = {cluster: [job.offering for job in each] for cluster, each in listed.items()}
    assert shown == {LOCAL: [""], FAR: [twins[FAR].offering("l40s/whole").key]}


def test_jobs_are_listed_in_the_project_of_their_own_cluster(member: User, twins: dict[str, Twin]) -> None:
    uids = {cluster: str(uuid4()) for cluster in BOTH}
    for cluster, uid in uids.items():
        workload(cluster, uid, twins[cluster].flavors["l40s"])
    listed = {cluster: jobs.read(jobs.rows(Project.objects.filter(cluster=cluster))) for cluster in BOTH}
    found = {cluster: [(str(job.uid), job.project.slug) for job in each] for cluster, each in listed.items()}
    assert found == {LOCAL: [(uids[LOCAL], "vision-train")], FAR: [(uids[FAR], "vision-far")]}


def test_each_cluster_has_a_queue_of_the_team(twins: dict[str, Twin]) -> None:
    rows = [twin.row for twin in twins.values()]
    assert queue.positions(rows) == {row.pk: (1, 1) for row in rows}


def test_use_beyond_a_lease_is_noted_for_the_cluster_where_it_is(twins: dict[str, Twin]) -> None:
    for cluster, pods in ((LOCAL, 1), (FAR, 2)):
        usage = {twins[cluster].flavors["l40s"]: {GPU: 1}}
        mirrored(cluster, "Workload", "train-lease", allocation="train", cluster_queue="team-vision", usage=usage)
        Allocation.objects.filter(pk=twins[cluster].row.pk).update(offering=twins[cluster].offering("l40s/whole"))
        for number in range(pods):
            more: dict[str, Any] = {"node": "l40s-0", "phase": "Running", "gpus": {GPU: 1}}
            mirrored(cluster, "Pod", f"train-{number}", allocation="train", **more)
    assert lease_check.record_sightings(LOCAL, T0) == []
    lease_check.record_sightings(FAR, T0)
    lease_check.record_sightings(LOCAL, T0)  # which ends nothing of the other's
    noted = LeaseExcess.objects.filter(over_at=None).values_list("cluster", "holder")
    assert list(noted) == [(FAR, str(twins[FAR].row.pk))]


def test_what_was_applied_is_known_for_each(twins: dict[str, Twin]) -> None:
    ref = Ref("ResourceClaim", NAMESPACE, "train")
    for cluster, twin in twins.items():
        target, seen_as = targets.allocation(cluster, twin.row.pk), {"uid": cluster, "resource_version": 9}
        AppliedObject.objects.create(cluster_id=cluster, **ref._asdict(), target=target, **seen_as, applied_at=T0)
    record_list(FAR, KINDS["ResourceClaim"], [], 30, at(0))
    assert due() == {f"far/allocation:{twins[FAR].row.pk}"}
    apply.forget(FAR, [ref])
    assert list(AppliedObject.objects.values_list("cluster", "uid")) == [(LOCAL, LOCAL)]
    shown = {cluster: selectors.details([twin.row])[twin.row.pk].objects for cluster, twin in twins.items()}
    assert shown == {LOCAL: (tuple(ref),), FAR: ()}


def test_after_a_start_a_watcher_has_its_own_cluster_looked_at(twins: dict[str, Twin]) -> None:
    enqueue_everything(FAR)
    only = {f"far/{kind}" for kind in ("platform", "inventory", "adoption", "project:vision-far")}
    assert due() == {*only, f"far/allocation:{twins[FAR].row.pk}"}


def test_what_a_flavor_is_given_concerns_its_cluster_and_a_team_concerns_all(
    team: Team, twins: dict[str, Twin]
) -> None:
    flavor = twins[FAR].offering("l40s/whole").flavor
    catalog.configure_flavor("operator", flavor, {"title": "L40S"})
    assert due() == {"far/platform", "far/project:vision-far"}
    WorkItem.objects.all().delete()
    limits.set_limit("operator", team, flavor.pools.get(), 3)
    assert due() == {"far/platform"}
    WorkItem.objects.all().delete()
    tenants.create_team(team.department, "speech", "Speech")
    assert due() == {"far/platform", "local/platform"}


def test_a_cluster_without_credentials_here_waits_and_the_other_goes_on(twins: dict[str, Twin]) -> None:
    with pytest.raises(ClusterUnavailable, match="no credentials for cluster far"):
        connect(FAR)
    workqueue.enqueue(targets.platform(FAR), targets.adoption(LOCAL))
    for cluster in BOTH:
        for target in (targets.platform(FAR), targets.adoption(LOCAL)):
            if targets.parse(target).cluster == cluster:
                assert dispatch.process(target)
    (waits,) = WorkItem.objects.all()
    assert (waits.target, waits.attempts) == ("far/platform", 1)
    assert "no credentials" in waits.error


def test_a_target_of_the_release_before_is_of_the_environments_cluster() -> None:
    assert targets.parse("project:vision-train") == (LOCAL, "project", "vision-train")
    assert targets.parse("platform") == (LOCAL, "platform", "")


def test_an_offering_of_another_cluster_is_refused_and_never_proposed(member: User, twins: dict[str, Twin]) -> None:
    wish = AllocationRequest(project="vision-train", offering=twins[FAR].offering("l40s/whole").key)
    with pytest.raises(Invalid, match="far"):
        services.request(member, wish)
    many = replace(wish, offering="h100/whole", count=3)
    proposed = {one.offering for one in services.preview(member, many).alternatives}
    assert proposed
    assert proposed <= set(Offering.objects.filter(flavor__cluster=LOCAL).values_list("key", flat=True))


def test_a_lost_row_is_made_again_in_the_project_of_its_leases_cluster(twins: dict[str, Twin]) -> None:
    row = spec_of_row.rows().get(pk=twins[FAR].row.pk)
    record = spec_of_row.resolved_spec(row).record
    row.transitions.all().delete()
    Allocation.objects.filter(pk=row.pk).delete()
    for cluster in BOTH:
        mirrored(cluster, "Workload", names.lease("train"), allocation="train", record=record)
    reconcile_adoption(LOCAL)
    assert not Allocation.objects.filter(pk=row.pk).exists()
    reconcile_adoption(FAR)
    assert Allocation.objects.get(pk=row.pk).project == twins[FAR].project


def test_what_keeps_a_namespace_is_told_of_the_project_of_its_cluster(twins: dict[str, Twin]) -> None:
    for cluster, twin in twins.items():
        Project.objects.filter(pk=twin.project.pk).update(archived_at=T0)
        mirrored(cluster, "Namespace", NAMESPACE, deleting=True, remaining=[f"of {cluster}"])
    told = archive.remaining(Project.objects.all())
    assert told == {"vision-train": ["of local"], "vision-far": ["of far"]}


def test_each_has_an_etcd_of_its_own(twins: dict[str, Twin]) -> None:
    etcd_monitor.record(LOCAL, 10)
    etcd_monitor.record(FAR, 20)
    assert [etcd_monitor.current(cluster).size_bytes for cluster in BOTH] == [10, 20]


def test_the_cluster_of_the_environment_is_registered_once_and_follows_it(db: None, settings: Any) -> None:
    registry.register()
    settings.KUBERNETES_PUBLIC_URL = "https://kubernetes.example.org"
    assert registry.register() == LOCAL
    assert list(Cluster.objects.values_list("slug", "server")) == [(LOCAL, "https://kubernetes.example.org")]
