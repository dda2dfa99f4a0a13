"""Every kind of slice on every backend: requested over REST, held, used by a tenant's pod, released without a trace.

    python -m tests.stack tests/cluster/test_every_slice.py --slices-table docs/concepts/slices.md

writes the observations into the guide.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from allocations.cluster.names import hold_slot
from allocations.domain.phases import Phase
from allocations.models import Allocation
from portal.tenants.models import Project, User
from tests.support.cluster import slices
from tests.support.cluster.allocations import ended, wait_for
from tests.support.cluster.api_client import ApiClient, Object
from tests.support.cluster.connected import Tenant, apply_pod, running
from tests.support.cluster.every_kind import offering_of
from tests.support.cluster.guide import Observation, write_table
from tests.support.cluster.tenants import retry_refused
from tests.support.cluster.waiting import eventually
from tests.support.people import client

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def observations(request: pytest.FixtureRequest) -> Iterator[list[Observation]]:
    """Yield the list of rows; write them into the guide at the end if the command line names it."""
    found: list[Observation] = []
    yield found
    if path := request.config.getoption("--slices-table"):
        write_table(Path(path), sorted(found, key=lambda one: slices.ROWS.index(one.row)))


@pytest.mark.parametrize("row", slices.ROWS, ids=lambda row: row.key)
def test_a_slice_is_held_used_and_given_back(
    row: slices.Row,
    every_kind: dict[str, str],
    member: User,
    project: Project,
    admin: ApiClient,
    tenant: Callable[[dict[str, Any]], Tenant],
    observations: list[Observation],
) -> None:
    api = client(member)
    body = {"offering": offering_of(row, every_kind), "count": row.count, **row.body}
    began = time.monotonic()
    response = api.post("/api/v1/allocations", {"project": project.slug, **body}, format="json")
    assert response.status_code == 201, response.json()
    allocation = wait_for(Allocation.objects.get(pk=response.json()["id"]), Phase.ACTIVE)
    seconds = time.monotonic() - began
    shown = api.get(f"/api/v1/allocations/{allocation.pk}").json()
    assert shown["isolation"] == row.isolation
    assert bool(shown["devices"]) == row.named
    if row.named and row.slice.startswith("mig-"):
        assert all(d["profile"] == row.slice.removeprefix("mig-") for d in shown["devices"])
        assert all(d["parent_uuid"].startswith("GPU-") and d["placement"] for d in shown["devices"])
        # One that is cut beforehand has a UUID before it is held; one that is cut on demand gets it on the node.
        assert all(d["uuid"].startswith("MIG-") == row.title.startswith("MIG, static") for d in shown["devices"])
    objects = [o["kind"] for o in shown["objects"]] + shared(admin, allocation)
    connection = api.get(f"/api/v1/allocations/{allocation.pk}/connect").json()
    use = tenant(connection)
    pod = yaml.safe_load(connection["pod_yaml"])
    retry_refused(apply_pod, use, connection["pod_yaml"])
    node = running(use, pod["metadata"]["name"])["spec"]["nodeName"]
    assert node.startswith(f"{row.nodes}-")
    if row.named:
        assert node == shown["devices"][0]["node"]
    stranger = without_label(connection["pod_yaml"], admin, project.namespace)
    refused = use("apply", "-f", "-", stdin=yaml.safe_dump(stranger))
    assert refused.returncode != 0
    assert "gpu-portal.io/allocation" in refused.stderr
    ended(member, allocation)
    eventually(lambda: not remaining_objects(admin, project, allocation.name))
    observations.append(Observation(row, body, objects, device(shown), seconds, node))


def without_label(pod_yaml: str, admin: ApiClient, namespace: str) -> dict[str, Any]:
    """Return the same pod as the policies changed it, without the label and with another name."""
    pod: dict[str, Any] = yaml.safe_load(pod_yaml)
    dressed = admin.get("pod", pod["metadata"]["name"], namespace)["spec"]
    spec = pod["spec"]
    for field in ("resourceClaims", "tolerations", "nodeSelector"):
        if field in dressed:
            spec[field] = dressed[field]
    for plain, got in zip(spec["containers"], dressed["containers"], strict=True):
        plain["resources"] = got["resources"]
    return {**pod, "metadata": {"name": "stranger", "namespace": namespace}}


def shared(admin: ApiClient, allocation: Allocation) -> list[str]:
    """Return the hold quota that counts the allocation's slices; only with the device plugin."""
    resource = allocation.offering.resource
    if not resource:
        return []
    name, namespace = hold_slot(allocation.number), allocation.project.namespace
    hard = admin.get("resourcequota", name, namespace)["status"]["hard"]
    assert int(hard[f"requests.{resource}"]) == allocation.count
    return ["ResourceQuota"]


def remaining_objects(admin: ApiClient, project: Project, name: str) -> list[Object]:
    """Return objects of the allocation that still exist, including tenants' pods."""
    return admin.objects("workloads,resourceclaims,pods", project.namespace, labels=f"gpu-portal.io/allocation={name}")


def device(shown: dict[str, Any]) -> str:
    """Return the devices' names with placement, or the count on the flavor."""
    if not shown["devices"]:
        return f"{shown['count']} on the flavor; none is named"
    return ", ".join(f"{d['node']}/{d['device']}" for d in shown["devices"])
