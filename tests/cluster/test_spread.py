"""More slices by DRA than a node has: one claim and one holder each, on any nodes."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from allocations.cluster import names
from allocations.connect import connection
from allocations.domain.phases import Phase
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from allocations.requests import details, selectors
from portal.core.errors import Refused
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog import services as catalog
from quotas.catalog.models import Offering
from quotas.limits import services as limits
from quotas.limits.models import Limit
from tests.support.cluster.allocations import ended, held, intervals, request_slices, wait_for
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.pods import running_pod
from tests.support.cluster.tenants import retry_refused
from tests.support.cluster.waiting import eventually
from tests.support.clusters import LOCAL

pytestmark = pytest.mark.cluster

COUNT = 10
"""The GPUs of a node of the local fleet."""
STARTS_WITHIN_S = 120
"""On a busy machine a holder may need longer than the deadline that the tests set: all slices would be given up."""


@pytest.fixture
def quota(vision: Team) -> Iterator[None]:
    """Let the team hold this many, and start them for longer, for one test."""
    offering = Offering.objects.get(key="h100/whole")
    before = Limit.objects.get(team=vision, pool=offering.pool).nominal
    limits.set_limit(SYSTEM, vision, offering.pool, COUNT)
    catalog.configure_flavor(SYSTEM, offering.flavor, {"start_deadline_s": STARTS_WITHIN_S})
    yield
    catalog.configure_flavor(SYSTEM, offering.flavor, {"start_deadline_s": None})
    limits.set_limit(SYSTEM, vision, offering.pool, before)


@pytest.fixture
def row(quota: None, project: Project, member: User) -> Allocation:
    return held(member, project, "h100/whole", COUNT, name="wide", constraints={"spread": True})


def test_more_than_a_node_has_is_refused_unless_it_may_spread(quota: None, project: Project, member: User) -> None:
    with pytest.raises(Refused) as caught:
        request_slices(member, project, "h100/whole", COUNT)
    assert [violation.dimension for violation in caught.value.violations] == ["node:h100/whole"]
    assert "constraints.spread" in caught.value.hint


def test_each_slice_has_a_claim_and_all_of_them_are_held(row: Allocation, admin: ApiClient) -> None:
    found = admin.objects("resourceclaims", row.project.namespace)
    assert {claim["metadata"]["name"] for claim in found} == {f"wide.{n}" for n in range(COUNT)}
    results = [r for claim in found for r in claim["status"]["allocation"]["devices"]["results"]]
    devices = details.by_id([row])[row.pk].devices
    assert {(d.node, d.device) for d in devices} == {(r["pool"], r["device"]) for r in results}
    assert len(devices) == COUNT
    assert len({d.node for d in devices}) == 2
    assert len([i for i in intervals(row) if i.end is None]) == COUNT


def test_pods_get_the_slice_that_they_name(row: Allocation, admin: ApiClient) -> None:
    for index in (0, COUNT - 1):
        pod = tenant_pod(row, str(index))
        retry_refused(admin.created, pod, row.project.namespace)
        manifest = running_pod(admin, row.project.namespace, pod["metadata"]["name"], within_s=60)
        claim = admin.get("resourceclaim", f"wide.{index}", row.project.namespace)
        (device,) = claim["status"]["allocation"]["devices"]["results"]
        assert manifest["spec"]["nodeName"] == device["pool"]
        assert {"resource": "pods", "name": pod["metadata"]["name"], "uid": manifest["metadata"]["uid"]} in claim[
            "status"
        ]["reservedFor"]


def test_pods_of_a_stateful_set_get_one_slice_each(row: Allocation, admin: ApiClient) -> None:
    chosen = {"app": "wide"}
    pod = tenant_pod(row, "")
    template = {"metadata": {"labels": {**pod["metadata"]["labels"], **chosen}}, "spec": pod["spec"]}
    template["spec"].pop("restartPolicy")
    spec = {"replicas": 3, "podManagementPolicy": "Parallel", "selector": {"matchLabels": chosen}, "template": template}
    stateful_set = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "ring"}, "spec": spec}
    admin.created(stateful_set, row.project.namespace)
    for index in range(3):
        manifest = running_pod(admin, row.project.namespace, f"ring-{index}", within_s=60)
        assert manifest["spec"]["resourceClaims"] == [{"name": "gpu-portal", "resourceClaimName": f"wide.{index}"}]


def test_a_claim_deleted_in_use_comes_back_and_the_others_stay(row: Allocation, admin: ApiClient) -> None:
    before = uids(admin, row.project.namespace)
    admin.delete("resourceclaim", "wide.3", row.project.namespace)
    eventually(lambda: row.transitions.filter(reason="claim_deleted").exists(), within_s=60)
    eventually(lambda: row.transitions.filter(to_phase="active", type="phase").count() == 2, within_s=60)
    after = uids(admin, row.project.namespace)
    changed = {name for name in before if after.get(name) != before[name]}
    assert changed == {"ResourceClaim/wide.3", "Pod/wide.3-holder"}
    assert sorted(i.end is None for i in intervals(row)) == [False] + [True] * COUNT


def test_release_leaves_nothing_behind(row: Allocation, member: User, admin: ApiClient) -> None:
    ended(member, row)
    assert admin.objects("workloads,resourceclaims,pods", row.project.namespace) == []
    assert all(interval.end for interval in intervals(row))


def test_a_lost_row_comes_back_with_its_constraint(row: Allocation) -> None:
    opened = [i.key for i in intervals(row)]
    Allocation.objects.filter(pk=row.pk).delete()
    workqueue.enqueue(targets.adoption(LOCAL))
    eventually(lambda: Allocation.objects.filter(pk=row.pk, recovered=True, constraints={"spread": True}).exists())
    wait_for(row, Phase.ACTIVE)
    assert [i.key for i in intervals(row)] == opened


def test_by_device_plugin_it_changes_nothing(project: Project, member: User, admin: ApiClient) -> None:
    row = held(member, project, "l40s/whole", 2, constraints={"spread": True})
    status = admin.get("resourcequota", names.hold_slot(row.number), project.namespace)["status"]
    assert status["hard"]["requests.nvidia.com/gpu"] == "2"
    assert selectors.reservation(row) == "count"


def tenant_pod(row: Allocation, index: str) -> dict[str, Any]:
    """Return the pod from /connect, for slice ``index``; without a slice if it is empty."""
    pod: dict[str, Any] = yaml.safe_load(connection.pod_yaml(spec_of_row.rows().get(pk=row.pk)))
    assert pod["metadata"]["annotations"] == {"gpu-portal.io/slices": "0"}
    pod["metadata"] |= {"name": f"on-{index}", "annotations": {"gpu-portal.io/slices": index} if index else {}}
    return pod


def uids(admin: ApiClient, namespace: str) -> dict[str, str]:
    """Return uids of claims and holders, by kind and name."""
    found = admin.objects("resourceclaims,pods", namespace)
    return {f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["uid"] for item in found}
