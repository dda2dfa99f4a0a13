"""The capacity ledger beside the cluster's own nodes and ResourceSlices."""

from collections import defaultdict
from datetime import timedelta
from fractions import Fraction

import pytest

from allocations.reconcile.metering import open_intervals
from deploy.local.fleet import spec
from portal.clusters import registry
from portal.core import clock
from portal.tenants.models import Project, User
from quotas.metering import balance
from quotas.metering.models import CapacityInterval, ForeignUse
from quotas.metering.parts import Category
from tests.support import hours_by_flavor
from tests.support.cluster.allocations import held, intervals, release_all
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.hardware import Apply, Command, Read, Switch, gpu_pod
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster
MICROSECOND = timedelta(microseconds=1)
BUILT_IN = {"h100": 16, "a100": 8, "l40s": 8, "t4": 8}
"""GPUs by flavor of the nodes of deploy/local/fleet.yaml."""


@pytest.fixture(scope="module")
def nodes(one_more: Switch) -> dict[str, str]:
    """Return the names of one more node of each of two kinds."""
    return one_more("h100", "l40s")


def gpus_by_flavor() -> dict[str, Fraction]:
    """Return the GPUs that are offered on the nodes that are always there, as recorded."""
    names = [f"{kind.name}-{number}" for kind in spec.load(spec.FLEET_FILE).kinds for number in range(kind.nodes)]
    found: dict[str, Fraction] = defaultdict(Fraction)
    for row in CapacityInterval.objects.filter(end=None, node__in=names):
        if row.value and row.value.offered:
            found[row.flavor] += row.count * row.value.gpus
    return found


def of(node: str, name: str) -> list[CapacityInterval]:
    return list(CapacityInterval.objects.filter(node=node, name=name).order_by("start", "pk"))


def state(node: str, name: str) -> tuple[int, str] | None:
    last = of(node, name)[-1:]
    return (last[0].available, last[0].state) if last and last[0].end is None else None


def published(read: Read) -> set[tuple[str, str]]:
    """Return node and name of every unit that the cluster has now: GPUs of slices, and GPU resources of nodes."""
    slices = [one["spec"] for one in read("resourceslices")["items"] if one["spec"]["driver"] == "gpu.nvidia.com"]
    gpus = {
        (one["nodeName"], device["name"].partition("-mig-")[0]) for one in slices for device in one.get("devices", ())
    }
    resources = {
        (node["metadata"]["name"], name)
        for node in read("nodes")["items"]
        for name, amount in node["status"]["capacity"].items()
        if name.startswith(("nvidia.com/gpu", "nvidia.com/mig-")) and amount != "0"
    }
    return gpus | resources


def recorded() -> set[tuple[str, str]]:
    return set(CapacityInterval.objects.filter(end=None).values_list("node", "name"))


def test_the_ledger_has_what_the_cluster_has(read: Read):
    eventually(lambda: recorded() == published(read))
    eventually(lambda: BUILT_IN.items() <= gpus_by_flavor().items())


def test_a_node_that_comes_and_goes_begins_and_ends_its_capacity(nodes: dict[str, str], fleet: Command):
    node = nodes["h100"]
    eventually(lambda: state(node, "gpu-7") == (1, ""))
    eventually(lambda: of(node, "gpu-7")[-1].flavor == "h100")
    fleet("taint", f"{node}/gpu-7", "--xid", "79")
    eventually(lambda: state(node, "gpu-7") == (0, "tainted"))
    fleet("heal", f"{node}/gpu-7")
    eventually(lambda: state(node, "gpu-7") == (1, ""))
    fleet("node", "down", node)
    eventually(lambda: state(node, "gpu-7") == (0, "node_not_ready"))
    fleet("node", "up", node)
    eventually(lambda: state(node, "gpu-7") == (1, ""))
    rows = of(node, "gpu-7")[-5:]
    assert [row.start for row in rows[1:]] == [row.end for row in rows[:-1]]
    assert {row.flavor for row in rows} == {"h100"}
    assert not any(row.estimated_start or row.estimated_end for row in rows)
    fleet("--extra", "h100=0")
    eventually(lambda: state(node, "gpu-7") is None)


def test_a_pod_without_an_allocation_is_unmanaged_from_its_node_until_it_is_gone(
    nodes: dict[str, str], apply: Apply, admin: ApiClient, namespace: str
):
    eventually(lambda: not ForeignUse.objects.filter(end=None).exists())
    start, node = clock.now(), nodes["l40s"]
    apply(gpu_pod("unmanaged", "nvidia.com/gpu", 2, node))
    eventually(lambda: ForeignUse.objects.filter(consumer="unmanaged", node=node, count=2, end=None).exists())
    eventually(lambda: of(node, "nvidia.com/gpu")[-1].flavor == "l40s")
    admin.delete("pod", "unmanaged", namespace, gracePeriodSeconds=1)
    ended = eventually(lambda: ForeignUse.objects.filter(consumer="unmanaged", node=node).exclude(end=None).first())
    assert ended is not None
    assert ended.end is not None
    [hours] = [one for one in hours_by_flavor.by_flavor(start, clock.now()) if one.flavor == "l40s"]
    assert hours.is_balanced
    assert hours.parts[Category.UNMANAGED] * 3600 == 2 * Fraction((ended.end - ended.start) // MICROSECOND, 1_000_000)


def test_the_ledger_adds_up_and_is_what_the_cluster_shows_while_slices_are_held_and_once_they_are_not(
    project: Project, member: User
):
    """Whatever other tests have left counts too."""

    def adds_up() -> bool:
        hour = clock.now().replace(minute=0, second=0, microsecond=0)
        found = [*open_intervals.differences(registry.own()), *balance.of_hour(registry.own(), hour).failures]
        assert not found, "\n".join(one.message for one in found)
        return True

    rows = [held(member, project, offering) for offering in ("h100/whole", "h100/mig-1g.10gb", "l40s/whole")]
    eventually(adds_up, AssertionError)
    release_all(project)
    eventually(lambda: all(intervals(row)[-1].end is not None for row in rows))
    eventually(adds_up, AssertionError)
