"""Random changes of existing objects, as merge patches."""

from random import Random

from tests.cluster.random_tenant.manifests import ALLOCATION, TOLERATION, behaviour
from tests.support.cluster.api_client import Object
from tests.support.cluster.manifests import QUEUE

KEEP = "example.com/keep"
OF_CONTROLLERS = (
    *("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"),
    *("pod-template-hash", "controller-revision-hash", "statefulset.kubernetes.io/pod-name"),
)
"""Labels by which controllers of workloads know their pods, old names too."""


def of_job(rng: Random, thing: Object, others: list[Object], label: Object) -> Object:
    """Return a change of a Job. ``others``: possible owners in the namespace; ``label``: an allocation's."""
    parallelism = thing["spec"].get("parallelism", 1)
    number = rng.choice([0, 1, 2, parallelism, parallelism, parallelism + rng.randint(1, 12)])
    return rng.choice(
        [
            {"spec": {"parallelism": number}},
            {"spec": {"completions": number}},
            {"spec": {"parallelism": number, "completions": number}},
            {"spec": {"parallelism": number, "completions": number}},
            {"spec": {"suspend": True}},
            {"spec": {"suspend": True}},
            {"spec": {"suspend": False}},
            {"spec": {"podReplacementPolicy": rng.choice(["Failed", "TerminatingOrFailed", None])}},
            {"spec": {"activeDeadlineSeconds": rng.choice([1, 5, None])}},
            {"spec": {"backoffLimit": rng.choice([0, 100])}},
            {"spec": {"ttlSecondsAfterFinished": rng.choice([0, 5, None])}},
            {"spec": {"template": {"metadata": {"labels": label, "annotations": behaviour(rng)}}}},
            {"metadata": {"labels": {QUEUE: rng.choice(["gpu", None, "other"])}}},
            {"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "high"}}},
            {"metadata": {"annotations": {"kueue.x-k8s.io/job-min-parallelism": "1"}}},
            *([{"metadata": {"finalizers": finalizers(rng)}}] * 3),
            *([{"metadata": {"ownerReferences": owners(rng, others)}}] * 3),
        ]
    )


def of_pod(rng: Random, others: list[Object], label: Object) -> Object:
    return rng.choice(
        [
            {"metadata": {"labels": label or {ALLOCATION: None}}},
            {"metadata": {"labels": {"batch.kubernetes.io/controller-uid": None, "job-name": None}}},
            *([{"metadata": {"labels": joining(rng, others)}}] * 2),
            {"metadata": {"annotations": {"gpu-portal.io/run-for": "1s"}}},
            {"metadata": {"finalizers": finalizers(rng)}},
            {"metadata": {"ownerReferences": owners(rng, others)}},
            {"spec": {"activeDeadlineSeconds": 2}},
            {"spec": {"tolerations": [TOLERATION]}},
        ]
    )


def joining(rng: Random, others: list[Object]) -> dict[str, str]:
    """Return labels of a pod by which the controller of another object might take it for one of its own."""
    if not others:
        return {}
    metadata = rng.choice(others)["metadata"]
    keys = rng.sample(OF_CONTROLLERS, rng.randint(1, 4))
    values = {key: metadata["uid"] if "uid" in key else metadata["name"] for key in keys}
    return {**metadata.get("labels", {}), **values}


def of_replicated(rng: Random, others: list[Object], label: Object) -> Object:
    """Return a change of a Deployment or a StatefulSet."""
    return rng.choice(
        [
            {"spec": {"template": {"metadata": {"labels": label or {ALLOCATION: None}}}}},
            {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": rng.choice([0, 3, 8])}}}},
            {"metadata": {"finalizers": finalizers(rng)}},
            {"metadata": {"ownerReferences": owners(rng, others)}},
            {"spec": {"replicas": rng.randint(0, 6)}},
        ]
    )


def finalizers(rng: Random) -> list[str] | None:
    return rng.choice([[KEEP], [KEEP], [KEEP], ["orphan"], ["foregroundDeletion"], None])


def owners(rng: Random, others: list[Object]) -> list[Object] | None:
    """Return an owner reference to another object, with or without `controller`; sometimes none."""
    if not others or rng.random() < 0.2:
        return None
    owner = rng.choice(others)
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": rng.choice([True, True, False]),
    }
    return [reference]
