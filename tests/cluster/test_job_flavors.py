"""Queued Jobs and the flavors of the fleet, with a member's kubectl: what is refused at creation, what an Event says it
became, and what the list says of pods that are refused.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.local.runner import Local
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, User
from quotas.catalog import services as catalog
from quotas.catalog.models import Flavor
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.jobs import guided
from tests.support.cluster.stage import Person
from tests.support.cluster.tenants import person_of
from tests.support.cluster.waiting import eventually
from tests.support.people import client

pytestmark = pytest.mark.cluster
H100, T4, L40S = "NVIDIA-H100-80GB-HBM3", "Tesla-T4", "NVIDIA-L40S"
Create = Callable[..., Any]


@pytest.fixture
def person(local: Local, tmp_path: Path, member: User, project: Project) -> Person:
    return person_of(local, tmp_path, member, project.namespace)


def job(name: str, product: str, resource: str = "nvidia.com/gpu", amount: int = 1) -> dict[str, Any]:
    body = guided()
    body["metadata"]["name"] = name
    body["spec"] |= {"parallelism": 1, "completions": 1}
    template = body["spec"]["template"]
    template["metadata"] = {"annotations": {"gpu-portal.io/run-for": "1h"}}
    template["spec"]["nodeSelector"] = {"nvidia.com/gpu.product": product}
    amounts = {resource: str(amount)}
    template["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return body


def create(person: Person, body: dict[str, Any]) -> str:
    """Return what kubectl says of it on standard error."""
    return person.run("create", "-f", "-", stdin=json.dumps(body)).stderr


def knows(admin: ApiClient, project: Project) -> dict[str, Any]:
    guard = admin.get("gpuproject", "gpu-portal", project.namespace)
    flavors: dict[str, Any] = guard["spec"].get("jobFlavors", {})
    return flavors


@pytest.fixture
def one_share(admin: ApiClient, project: Project) -> Iterator[None]:
    """Have the device plugin of the T4s refuse more than one share."""

    def decide(value: bool | None) -> None:
        catalog.configure_flavor(SYSTEM, Flavor.objects.get(name="t4"), {"fail_requests_greater_than_one": value})

    decide(True)
    eventually(lambda: knows(admin, project)["t4"]["resources"]["nvidia.com/gpu.shared"].get("perContainer") == 1)
    yield
    decide(None)


@pytest.mark.usefixtures("one_share")
def test_two_shares_are_refused_where_the_device_plugin_refuses_more_than_one(person: Person) -> None:
    two = job("two", T4, "nvidia.com/gpu.shared", 2)

    def refused() -> bool:
        return "gives a container 1 of nvidia.com/gpu.shared" in person.create(two, dry_run=True).message

    eventually(refused)
    assert create(person, job("one", T4, "nvidia.com/gpu.shared")) == ""


def test_a_gpu_by_dra_is_refused_with_the_command_that_holds_it(person: Person, project: Project) -> None:
    said = create(person, job("large", H100))
    assert f"gpu-portal request h100/whole --project {project.slug}" in " ".join(said.split())


def test_more_in_a_pod_than_a_node_has_is_refused_with_what_it_has(person: Person) -> None:
    assert "l40s has 4 nvidia.com/gpu" in " ".join(create(person, job("wide", L40S, amount=5)).split())


@pytest.mark.own_project
def test_an_event_says_which_gpu_it_became(person: Person) -> None:
    assert create(person, job("train", L40S)) == ""

    def told() -> list[str]:
        events = person.api.objects("events", person.namespace, fields="involvedObject.kind=Job")
        return [event["message"] for event in events if event["reason"] == "GpuFlavor"]

    assert eventually(told) == ["Kueue gave it 1 × nvidia.com/gpu of l40s (NVIDIA-L40S)."]


def test_partial_admission_says_for_how_many_pods(person: Person, member: User, project: Project) -> None:
    body = job("part", L40S)
    body["spec"] |= {"parallelism": 20, "completions": 20}
    body["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "1"}
    assert create(person, body) == ""

    def admitted() -> dict[str, Any] | None:
        [row] = client(member).get("/api/v1/jobs", {"project": project.slug}).json()["results"] or [{}]
        return row if row and 0 < (row["pods"] or {}).get("admitted", 0) < 20 else None

    row = eventually(admitted)
    assert row
    assert row["pods"]["requested"] == 20
    assert f"for {row['pods']['admitted']} of its 20 pods at once" in row["message"]


def test_pods_that_pod_security_refuses_are_told_in_the_list(person: Person, member: User, project: Project) -> None:
    body = job("unsafe", L40S)
    del body["spec"]["template"]["spec"]["securityContext"]
    del body["spec"]["template"]["spec"]["containers"][0]["securityContext"]
    create(person, body)

    def refused() -> dict[str, Any] | None:
        found = client(member).get("/api/v1/jobs", {"project": project.slug}).json()["results"]
        return next((row for row in found if row["reason"] == "pods_refused"), None)

    row = eventually(refused)
    assert row
    assert "violates PodSecurity" in row["message"]
    queue = client(member).get(f"/api/v1/queues/{project.team.slug}").json()["holding"]
    assert [entry["reason"] for entry in queue if entry["name"] == "unsafe"] == ["pods_refused"]
