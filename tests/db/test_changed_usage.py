"""The count of use after events of pods and claims: of their nodes alone, whatever the size of the fleet."""

import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from threading import Event, Thread
from typing import Any

import pytest
from django.db import connection, transaction

from allocations.domain.allocation_spec import AllocationRequest
from allocations.models import MirrorObject, UsageChange
from allocations.reconcile import usage_changes
from allocations.reconcile.changed_usage import reconcile_usage
from allocations.reconcile.inventory import reconcile_inventory
from allocations.reconcile.mirror_writer import record_observations
from allocations.requests import services
from portal.core.models import WorkItem
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, User
from quotas.catalog.models import Flavor, Node, Pool, PoolUse
from quotas.catalog.node_shares import NodeShare
from quotas.limits import services as limits
from tests.support.claims import facts
from tests.support.cluster.waiting import eventually
from tests.support.clusters import LOCAL
from tests.support.database_locks import waits_for_a_lock
from tests.support.gpu_facts import dra_node, plugin_node
from tests.support.job_observations import JOB, metadata_of, node_of, workload
from tests.support.job_observations import pod as pod_of_job
from tests.support.observed import T0, seen
from tests.support.rows_read import Reads, counted

pytestmark = pytest.mark.django_db
H100 = NodeShare(190_000, 2000 * 1024, 250)


def l40s(*numbers: int) -> list[dict[str, Any]]:
    bodies = [node_of(plugin_node(f"l40s-{number}")) for number in numbers]
    for body in bodies:
        body["status"]["allocatable"] |= {"cpu": "64", "memory": "512Gi", "pods": "250"}
    return bodies


@pytest.fixture(autouse=True)
def inventory_of_both_paths(project: Any) -> None:
    """Create two l40s nodes of four GPUs, and an h100 node of eight with dynamic MIG."""
    h100 = node_of(replace(dra_node(), gives=H100))
    h100["status"]["allocatable"] = {"cpu": "190", "memory": "2000Gi", "pods": "250"}
    watch([*l40s(0, 1), h100])
    MirrorObject.objects.bulk_create(
        MirrorObject(
            cluster_id=LOCAL, kind="ResourceSlice", name=f"s-{n}", uid=f"{n}", resource_version=1, facts=one, seen_at=T0
        )
        for n, one in enumerate(facts("h100", 1))
    )
    reconcile_inventory(LOCAL)
    Flavor.objects.update(accepted=True)
    reconcile_inventory(LOCAL)
    WorkItem.objects.all().delete()


def watch(bodies: Iterable[dict[str, Any]], *, gone: bool = False) -> None:
    record_observations(LOCAL, [seen(body, 0, gone=gone) for body in bodies])


def pod(name: str, node: str, cpu: int, gpus: int = 0, revision: int = 10, phase: str = "Running") -> dict[str, Any]:
    resources = {
        "requests": {"cpu": str(cpu), "memory": "1Gi"},
        "limits": {"nvidia.com/gpu": str(gpus)} if gpus else {},
    }
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "elsewhere", "uid": name, "resourceVersion": str(revision)},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "resources": resources}],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        },
        "status": {"phase": phase},
    }


def claim(name: str, *devices: str, revision: int = 10) -> dict[str, Any]:
    given = [{"request": "r", "driver": "gpu.nvidia.com", "pool": "h100-0", "device": device} for device in devices]
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "elsewhere", "uid": name, "resourceVersion": str(revision)},
        "status": {"allocation": {"devices": {"results": given}}} if devices else {},
    }


def targets() -> set[str]:
    return set(WorkItem.objects.values_list("target", flat=True))


def use() -> tuple[Any, ...]:
    nodes = Node.objects.values_list("name", "foreign", "blocked_units", "blocked_gpus", "problem", "found_problem")
    return list(nodes), list(PoolUse.objects.order_by("pool__key").values_list("pool__key", "foreign", "blocked"))


def test_events_of_pods_claims_and_jobs_cause_no_discovery() -> None:
    watch([pod("a", "l40s-0", 40, gpus=1), claim("c", "gpu-0"), pod_of_job(), workload()])
    watch([pod("a", "l40s-0", 40, gpus=1, revision=11, phase="Succeeded"), claim("c", revision=11)])
    watch([pod("a", "l40s-0", 40, gpus=1, revision=12)], gone=True)
    assert targets() == {"local/usage", f"local/job:{JOB}"}


def test_an_event_of_a_node_causes_discovery() -> None:
    cordoned = l40s(0)[0]
    cordoned["metadata"]["resourceVersion"] = "2"
    cordoned["spec"]["unschedulable"] = True
    watch([cordoned])
    assert "local/inventory" in targets()


def test_statements_and_rows_do_not_grow_with_nodes_their_pods_and_other_projects_jobs() -> None:
    def reads(name: str) -> tuple[Reads, Reads]:
        with counted() as watched:
            watch([pod(name, "l40s-0", 40, gpus=1)])
        with counted() as reconciled:
            reconcile_usage(LOCAL)
        watch([pod(name, "l40s-0", 40, revision=11)], gone=True)
        reconcile_usage(LOCAL)
        return watched, reconciled

    few = reads("first")
    watch(l40s(*range(2, 40)))
    reconcile_inventory(LOCAL)
    watch(pod(f"there-{n}", f"l40s-{n}", 4, gpus=1) for n in range(2, 40))
    watch([claim(f"c-{n}", f"gpu-{n}") for n in range(8)])
    while UsageChange.objects.exists():
        reconcile_usage(LOCAL)
    assert reads("second") == few
    assert few[1].rows > 0


def test_what_is_counted_by_node_is_what_a_count_of_all_finds() -> None:
    choice = random.Random(7)
    there: dict[str, dict[str, Any]] = {}
    foreign, blocked = set[str](), set[str]()
    for revision in range(20, 140):
        name = f"p-{choice.randrange(40)}"
        if name in there:
            watch([there.pop(name)], gone=True)
        else:
            part = f"gpu-{choice.randrange(8)}-mig-1g10gb-19-{choice.randrange(4)}"
            on_node = choice.choice(["l40s-0", "l40s-1", "h100-0", "cpu-0"])
            requests = pod(name, on_node, choice.choice([1, 60]), choice.choice([0, 0, 0, 1]), revision)
            there[name] = claim(name, part, revision=revision) if name in ("p-0", "p-1", "p-2") else requests
            watch([there[name]])
        if choice.random() < 0.5:
            reconcile_usage(LOCAL)
        if revision % 10 == 0:
            reconcile_usage(LOCAL)
            by_node = use()
            reconcile_inventory(LOCAL)
            assert use() == by_node
            foreign |= {node for node, units, *_ in by_node[0] if units}
            blocked |= {node for node, _, units, *_ in by_node[0] if units}
    assert foreign == {"l40s-0", "l40s-1", "h100-0"}
    assert blocked == {"l40s-0", "l40s-1", "h100-0"}


def test_a_node_that_changes_while_it_is_counted_is_counted_again() -> None:
    usage_changes.add(LOCAL, ["l40s-0", "l40s-1"])
    changes = usage_changes.due(LOCAL)
    usage_changes.add(LOCAL, ["l40s-0"])
    usage_changes.counted(LOCAL, changes, (), timedelta(0))
    assert set(usage_changes.due(LOCAL)) == {"l40s-0"}


@pytest.mark.django_db(transaction=True)
def test_a_node_whose_change_is_committed_at_the_end_of_its_count_is_counted_again() -> None:
    usage_changes.add(LOCAL, ["l40s-0"])
    changes, added = usage_changes.due(LOCAL), Event()

    def change() -> None:
        with transaction.atomic():
            usage_changes.add(LOCAL, ["l40s-0"])
            added.set()
            eventually(lambda: waits_for_a_lock("transactionid"))
        connection.close()

    changing = Thread(target=change)
    changing.start()
    assert added.wait(10)
    usage_changes.counted(LOCAL, changes, (), timedelta(0))
    changing.join()
    assert set(usage_changes.due(LOCAL)) == {"l40s-0"}


def test_a_blocked_node_is_counted_again_later_until_it_is_not_blocked() -> None:
    watch([pod("a", "l40s-0", 40)])
    later = reconcile_usage(LOCAL)
    assert later is not None
    assert later == UsageChange.objects.get().due_at
    watch([pod("a", "l40s-0", 40, revision=11)], gone=True)
    assert reconcile_usage(LOCAL) is None
    assert not UsageChange.objects.exists()


def test_a_node_that_discovery_finds_blocked_is_counted_again_later() -> None:
    watch([pod("a", "l40s-0", 40)])
    UsageChange.objects.all().delete()
    reconcile_inventory(LOCAL)
    assert list(UsageChange.objects.values_list("node", flat=True)) == ["l40s-0"]
    assert "local/usage" in targets()


def test_pods_of_a_job_that_got_quota_after_they_ran_are_no_foreign_use_then() -> None:
    watch([pod_of_job()])
    reconcile_usage(LOCAL)
    assert Node.objects.get(name="l40s-0").foreign == {"l40s/gpu": 2}
    watch([workload()])
    reconcile_usage(LOCAL)
    assert Node.objects.get(name="l40s-0").foreign == {}


def test_what_the_ledger_lacks_of_a_job_is_charged_before_its_use_is_counted() -> None:
    watch([pod_of_job()])
    MirrorObject.objects.create(
        cluster_id=LOCAL,
        kind="Workload",
        namespace="vision-train",
        name=metadata_of("job-train-1a2b3", 5)["name"],
        uid="w",
        resource_version=5,
        facts=seen(workload(), 0).facts or {},
        seen_at=T0,
    )
    reconcile_usage(LOCAL)
    assert Node.objects.get(name="l40s-0").foreign == {}


def test_a_pod_that_asks_for_an_impossible_number_of_gpus_does_not_keep_its_node_from_being_counted() -> None:
    watch([pod("many", "l40s-0", 1, gpus=2**62)])
    reconcile_usage(LOCAL)
    counted_by_node = use()
    assert Node.objects.get(name="l40s-0").foreign == {"l40s/gpu": 1_000_000}
    reconcile_inventory(LOCAL)
    assert use() == counted_by_node


def test_a_gpu_of_a_hold_whose_node_is_another_flavors_now_is_not_free_there(project: Project, member: User) -> None:
    """The lease counts in the pool in which it was admitted."""
    limits.set_limit(SYSTEM, project.team, Pool.objects.get(key="l40s/gpu"), 8)
    row = services.request(
        member, AllocationRequest.from_json({"project": project.slug, "offering": "l40s/whole", "count": 2, "hours": 1})
    )
    labels = {"gpu-portal.io/allocation": row.name}
    of_hold = pod("train", "l40s-0", 4, gpus=2)
    of_hold["metadata"] |= {"namespace": project.namespace, "labels": labels}
    watch([of_hold])
    reconcile_usage(LOCAL)
    assert PoolUse.objects.get(pool__key="l40s/gpu").foreign == 0

    relabelled = node_of(replace(plugin_node("l40s-0", "NVIDIA-L40"), gives=H100))
    relabelled["metadata"]["resourceVersion"] = "20"
    watch([relabelled])
    reconcile_inventory(LOCAL)
    use_of_other = PoolUse.objects.get(pool__key="l40/gpu")
    assert (use_of_other.total, use_of_other.foreign) == (4, 2)

    by_discovery = use()
    watch([{**of_hold, "metadata": {**of_hold["metadata"], "resourceVersion": "30"}, "status": {"phase": "Pending"}}])
    reconcile_usage(LOCAL)
    assert use() == by_discovery
