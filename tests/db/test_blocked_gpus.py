"""Pods outside the portal that request the share of GPUs: what is free beside them, and who is notified."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from allocations.capacity import flavor_devices
from allocations.capacity.snapshot import Capacity, CapacitySnapshot
from allocations.cluster import kinds
from allocations.cluster.kinds import KINDS, Observation
from allocations.models import MirrorObject
from allocations.reconcile import changed_usage, mirror
from allocations.reconcile.changed_usage import reconcile_usage
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.mirror_writer import record_observations
from portal.clusters.models import Cluster
from portal.core.models import WorkItem
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team
from quotas.catalog import services as catalog
from quotas.catalog.models import Flavor, Node, Offering, PoolUse
from quotas.catalog.node_shares import NodeShare
from tests.support.claims import facts
from tests.support.clusters import LOCAL
from tests.support.gpu_facts import dra_node, plugin_node

pytestmark = pytest.mark.django_db
T0 = datetime(2026, 11, 2, 12, tzinfo=UTC)
L40S = NodeShare(64_000, 512 * 1024, 250)
H100 = NodeShare(190_000, 2000 * 1024, 250)
TOLERATES = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


@pytest.fixture(autouse=True)
def inventory_of_both_paths(team: Team) -> None:
    """Create two l40s nodes of four GPUs, and an h100 node of eight with dynamic MIG."""
    Cluster.objects.get(slug=LOCAL)
    nodes = [replace(plugin_node(f"l40s-{n}"), gives=L40S) for n in range(2)] + [replace(dra_node(), gives=H100)]
    record_observations(LOCAL, [seen(node(one)) for one in nodes])
    MirrorObject.objects.bulk_create(
        MirrorObject(
            cluster_id=LOCAL, kind="ResourceSlice", name=f"s-{n}", uid=f"{n}", resource_version=1, facts=one, seen_at=T0
        )
        for n, one in enumerate(facts("h100", 1))
    )
    reconcile_inventory(LOCAL)
    for flavor in Flavor.objects.all():
        catalog.accept_flavor(SYSTEM, flavor)
    WorkItem.objects.all().delete()


def node(fact: Any) -> dict[str, Any]:
    gives = {"cpu": f"{fact.gives.cpu_millicores}m", "memory": f"{fact.gives.memory_mib}Mi", "pods": "250"}
    return {
        "kind": "Node",
        "metadata": {"name": fact.name, "uid": fact.name, "resourceVersion": "1", "labels": dict(fact.labels)},
        "spec": {"taints": [{"key": key, "value": value, "effect": effect} for key, value, effect in fact.taints]},
        "status": {
            "allocatable": {**fact.allocatable, **gives},
            "capacity": fact.capacity,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(
    node: str, cpu: int, name: str = "big", namespace: str = "elsewhere", revision: int = 10, phase: str = "Running"
) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": str(cpu), "memory": "1Gi"}}}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": name, "resourceVersion": str(revision)},
        "spec": {"nodeName": node, "containers": [container], "tolerations": TOLERATES},
        "status": {"phase": phase},
    }


def seen(body: dict[str, Any], *, gone: bool = False) -> Observation:
    found = kinds.observe(KINDS[body["kind"]], body, at=T0, live=True, gone=gone)
    assert found is not None
    return found


def watch(*bodies: dict[str, Any], gone: bool = False) -> datetime | None:
    record_observations(LOCAL, [seen(body, gone=gone) for body in bodies])
    return reconcile_usage(LOCAL)


def free(*offerings: str) -> list[int]:
    return [CapacitySnapshot().capacity(Offering.objects.get(key=key)).free for key in offerings]


def due() -> set[str]:
    """Return and finish the targets enqueued since the last call."""
    marked = set(WorkItem.objects.values_list("target", flat=True))
    WorkItem.objects.all().delete()
    return marked


def test_a_device_plugins_gpus_whose_share_others_ask_for_are_not_free() -> None:
    assert free("l40s/whole") == [8]
    watch(pod("l40s-0", 40))
    assert CapacitySnapshot().capacity(Offering.objects.get(key="l40s/whole")) == Capacity(total=5, held=0, free=5)
    assert PoolUse.objects.get(pool__key="l40s/gpu").blocked == 3
    watch(pod("l40s-0", 40), gone=True)
    assert free("l40s/whole") == [8]
    assert not Node.objects.exclude(problem="").exists()


def test_gpus_that_are_cut_on_demand_are_free_as_far_as_their_share_is() -> None:
    offerings = ("h100/whole", "h100/mig-3g.40gb", "h100/mig-1g.10gb")
    assert free(*offerings) == [8, 16, 56]
    watch(pod("h100-0", 150))
    assert free(*offerings) == [1, 3, 13]
    assert CapacitySnapshot().capacity(Offering.objects.get(key="h100/whole")).total == 8
    watch(pod("h100-0", 150), gone=True)
    assert free(*offerings) == [8, 16, 56]


def test_by_states_as_much_fits_as_gpu_by_gpu() -> None:
    watch(pod("h100-0", 150))
    flavor = Flavor.objects.get(name="h100")
    there = flavor_devices.of_flavors([flavor])[flavor.pk]
    each = type(there)(there.gpus, there.geometry)
    shapes = [
        flavor_devices.slice_shape(offering)
        for offering in flavor.offerings.select_related("flavor").exclude(kind="claim")
    ]
    assert [there.total(shape) for shape in shapes] == [each.total(shape) for shape in shapes]
    assert there.max_colocated(flavor_devices.slice_shape(flavor.offerings.get(kind="whole")), (), spread=True) == 1


def test_operators_read_what_is_wrong_with_a_node_that_stays_offered() -> None:
    watch(pod("l40s-0", 40))
    told = Node.objects.select_related("flavor").get(name="l40s-0")
    assert told.flavor is not None
    assert told.problem.startswith("pods that are not the portal's ask for 40 of 64 CPU here, so 1 of 4 GPUs have")


def test_a_smaller_share_that_operators_decided_blocks_less() -> None:
    catalog.configure_flavor(SYSTEM, Flavor.objects.get(name="l40s"), {"cpu_millicores_per_gpu": 6000})
    reconcile_inventory(LOCAL)
    watch(pod("l40s-0", 40))
    assert free("l40s/whole") == [8]


def test_it_is_looked_at_again_while_something_is_blocked() -> None:
    looked_at = watch(pod("l40s-0", 40))
    assert looked_at is not None
    assert timedelta(0) < looked_at - datetime.now(UTC) <= changed_usage.RECHECK_AFTER
    assert watch(pod("l40s-0", 40), gone=True) is None


def test_what_a_daemon_takes_makes_the_count_of_its_node_due_and_nothing_else(project: Project) -> None:
    due()
    record_observations(LOCAL, [seen(pod("l40s-0", 1, namespace=project.namespace))])
    assert due() == {"local/usage"}
    record_observations(LOCAL, [seen(pod("l40s-0", 1, namespace=project.namespace, revision=11, phase="Pending"))])
    assert due() == set()
    record_observations(LOCAL, [seen(pod("l40s-0", 1, namespace=project.namespace, revision=12, phase="Succeeded"))])
    assert due() == {"local/usage"}


def test_pods_of_other_nodes_are_not_read() -> None:
    record_observations(LOCAL, [seen(pod("cpu-0", 1, name="far")), seen(pod("l40s-0", 1))])
    assert [one.ref.name for one in mirror.of_nodes(LOCAL).of_kind("Pod")] == ["big"]


def test_queries_do_not_grow_with_pods() -> None:
    def queries(bodies: Iterable[dict[str, Any]]) -> int:
        record_observations(LOCAL, [seen(body) for body in bodies])
        reconcile_inventory(LOCAL)
        with CaptureQueriesContext(connection) as captured:
            reconcile_inventory(LOCAL)
        return len(captured)

    few = queries([pod("l40s-0", 20)])
    assert queries(pod("l40s-1", 1, name=f"p-{n}") for n in range(60)) == few
