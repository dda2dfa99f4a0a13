"""Attempts of a member with a kubeconfig to use more GPUs than a queued Job reserved, on the running portal.

The attempt is refused with a message, and in any case the GPUs of bound pods, including terminating ones, never exceed
Kueue's reservation.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deploy.local.runner import Local
from portal.tenants.models import Project, User
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.manifests import merge
from tests.support.cluster.stage import Person
from tests.support.cluster.tenants import person_of, queued_job
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster
GPU = "nvidia.com/gpu"
GpuCount = Callable[[], int]


@pytest.fixture
def person(local: Local, member: User, project: Project, tmp_path: Path) -> Person:
    return person_of(local, tmp_path, member, project.namespace)


@pytest.fixture
def used(admin: ApiClient, project: Project) -> GpuCount:
    """Return a function that counts the GPUs of pods bound to nodes, running or terminating."""

    def count() -> int:
        pods = admin.objects("pods", project.namespace)
        return sum(gpus(pod) for pod in pods if pod["spec"].get("nodeName"))

    return count


@pytest.fixture
def reserved(admin: ApiClient, project: Project) -> GpuCount:
    """Return a function that counts the GPUs that Kueue has reserved for unfinished work."""

    def count() -> int:
        items = admin.objects("workloads", project.namespace)
        return sum(
            int(podset["resourceUsage"][GPU])
            for item in items
            if not any(c["type"] == "Finished" for c in item.get("status", {}).get("conditions", []))
            for podset in item.get("status", {}).get("admission", {}).get("podSetAssignments", [])
        )

    return count


def gpus(pod: dict[str, Any]) -> int:
    if pod["status"].get("phase") in ("Succeeded", "Failed"):
        return 0
    return sum(int(c.get("resources", {}).get("limits", {}).get(GPU, 0)) for c in pod["spec"]["containers"])


def job(name: str, metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a queued Job of one pod with one GPU; ``spec`` and ``metadata`` are merged over it."""
    return merge(queued_job(name), {"metadata": metadata or {}, "spec": spec})


def submit(person: Person, body: dict[str, Any]) -> str:
    """Return an empty text, or what the API server refuses or warns of."""
    answer = person.create(body)
    return f"{answer.message}{answer.warnings}"


def patch(person: Person, name: str, body: dict[str, Any]) -> str:
    """Return an empty text, or the refusal."""
    return person.run("patch", "job", name, "--type=merge", "-p", json.dumps(body)).stderr


def running(person: Person, name: str, count: int = 1) -> set[str]:
    """Return the names of the Job's pods, once ``count`` of them run."""

    def running_pods() -> set[str]:
        pods = person.items("pods", f"job-name={name}")
        names = {
            pod["metadata"]["name"]
            for pod in pods
            if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        }
        return names if len(names) == count else set()

    return eventually(running_pods)


def test_a_finalizer_keeps_no_pods_of_a_deleted_job(person: Person, used: GpuCount, reserved: GpuCount) -> None:
    stay = {"finalizers": ["example.com/stay"]}
    messages = [submit(person, job("train", stay)), submit(person, job("train"))]
    running(person, "train")
    messages.append(patch(person, "train", {"metadata": stay}))
    person.delete("job", "train")
    try:
        eventually(lambda: (used(), reserved()) == (0, 0))
    finally:
        patch(person, "train", {"metadata": {"finalizers": None}})
    assert ["Leave metadata.finalizers out" in message for message in messages] == [True, False, True]


def test_an_owner_or_more_completions_give_a_job_no_more_pods(
    person: Person, used: GpuCount, reserved: GpuCount
) -> None:
    assert submit(person, job("other")) == ""
    running(person, "other")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "other", "controller": True}
    owner["uid"] = person.get("job", "other")["metadata"]["uid"]
    wide = submit(person, job("train", parallelism=3, completions=1, completionMode="Indexed"))
    submit(person, job("train", parallelism=1, completions=1, completionMode="Indexed"))
    running(person, "train")
    owned = patch(person, "train", {"metadata": {"ownerReferences": [owner]}})
    grown = patch(person, "train", {"spec": {"parallelism": 3, "completions": 3}})
    assert submit(person, job("last")) == ""
    running(person, "last")
    assert (used(), reserved()) == (3, 3)
    assert "Set parallelism to 1" in wide
    assert "Leave metadata.ownerReferences as they are" in owned
    assert "keeps the pods that it was submitted with" in grown


def test_pods_that_end_slowly_run_beside_no_successor(person: Person, used: GpuCount, reserved: GpuCount) -> None:
    slow = {
        "metadata": {"annotations": {"gpu-portal.io/ignore-sigterm": "true"}},
        "spec": {"terminationGracePeriodSeconds": 6},
    }
    body = job("train", parallelism=2, completions=2, template=slow, podReplacementPolicy="TerminatingOrFailed")
    assert submit(person, body) == ""
    first = running(person, "train", 2)
    patch(person, "train", {"spec": {"podReplacementPolicy": "TerminatingOrFailed"}})
    longer = person.run("delete", "pod", *first, "--grace-period=60", "--wait=false").stderr
    for pod in first:
        person.delete("pod", pod)
    highest = used()

    def replaced() -> bool:
        nonlocal highest
        highest = max(highest, used())
        pods = person.items("pods", "job-name=train")
        others = [pod for pod in pods if pod["metadata"]["name"] not in first and pod["spec"].get("nodeName")]
        return len(others) == 2

    eventually(replaced, within_s=90)  # a Job pauses before it makes a failed pod anew
    assert max(highest, used()) == reserved() == 2
    assert "a deletion gives it no more" in longer


def test_a_running_queued_job_is_not_suspended_by_its_owner(person: Person, used: GpuCount, reserved: GpuCount) -> None:
    assert submit(person, job("train")) == ""
    running(person, "train")
    assert "Kueue starts a queued Job" in patch(person, "train", {"spec": {"suspend": True}})
    assert (used(), reserved()) == (1, 1)


def test_a_running_queued_job_is_suspended_by_an_operator_and_started_again_by_kueue(
    person: Person, project: Project, admin: ApiClient, used: GpuCount, reserved: GpuCount
) -> None:
    assert submit(person, job("train")) == ""
    running(person, "train")
    suspended = admin.patch("job", "train", project.namespace, {"spec": {"suspend": True}})
    assert suspended["spec"]["suspend"]
    eventually(lambda: not person.get("job", "train")["spec"]["suspend"])
    eventually(lambda: (used(), reserved()) == (1, 1))


def test_no_container_without_a_gpu_sees_those_of_its_node(person: Person, used: GpuCount) -> None:
    pod = queued_job("train")["spec"]["template"]["spec"]
    (main,) = pod["containers"]
    none = {"limits": {GPU: "0"}, "requests": {GPU: "0"}}
    zero = job("zero", template={"spec": {"containers": [{**main, "resources": none}], "tolerations": []}})
    assert "queues for 0 GPUs" in submit(person, zero)
    second = {**main, "name": "second", "resources": none}
    first = {**main, "name": "first", "resources": {}, "env": [{"name": "OWN", "value": "stays"}]}
    template = {"spec": {"containers": [main, second], "initContainers": [first]}}
    assert submit(person, job("train", template=template)) == ""
    (name,) = running(person, "train")
    spec = person.get("pod", name)["spec"]
    void = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
    assert [c.get("env", []) for c in spec["containers"]] == [[], [void]]
    assert [c["env"] for c in spec["initContainers"]] == [[*first["env"], void]]
    assert used() == 1
