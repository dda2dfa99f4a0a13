"""Random pods, held against the API server's own count of what they request: the guards allow what goes with their GPUs
by that count, no more and no less.

    python -m tests.stack tests/cluster/test_pod_shapes.py --seed 3

The shapes that disagree are printed; the same seed draws them again.
"""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import pytest

from deploy.local.runner import Local
from tests.support import sizes
from tests.support.cluster.api_client import Object
from tests.support.cluster.guarded import Guarded, guarded, pod
from tests.support.cluster.pod_shapes import CPU, GIB, GPU, L40S, shape

pytestmark = pytest.mark.cluster
HELD, PER_NODE = 3, 4
SHARE = {"cpu": str(CPU), "memory": f"{GIB}Gi"}
SHAPES = sizes.size(100, 2000)
REFUSES = "ValidatingAdmissionPolicy"


@pytest.fixture(scope="module")
def held(local: Local) -> Iterator[Guarded]:
    """Yield a namespace that holds GPUs by device plugin, and whose queued Jobs can ask for more of the same."""
    with guarded(local.home) as place:
        allocation = {"mode": "device-plugin", "resource": GPU, "count": HELD, "share": SHARE}
        flavor = {"nodeLabels": L40S, "resources": {GPU: SHARE}}
        place.write(
            {
                "allocations": {"held": {**allocation, "priorityClassName": place.hold_class}},
                "flavors": {"l40s": flavor},
                "jobFlavors": {"l40s": {"nodeLabels": L40S, "resources": {GPU: {"perNode": PER_NODE}}}},
            }
        )
        yield place


def _resources(spec: Mapping[str, Any]) -> list[Object]:
    return [one["resources"] for one in [*spec["containers"], *spec.get("initContainers", ())]]


def _has_limits(spec: Mapping[str, Any]) -> bool:
    """Return whether each container has a limit of memory, or will be given one: none is, beside those of the whole."""
    if "memory" in spec.get("resources", {}).get("limits", {}):
        return True
    stated = [one.get("limits", {}).get("memory") for one in _resources(spec)]
    return all(limit != "0Gi" for limit in stated) and ("resources" not in spec or None not in stated)


def _fits(count: Mapping[str, float], most: int) -> bool:
    gpus = count[f"requests.{GPU}"]
    return (
        1 <= gpus <= most
        and count["requests.cpu"] <= CPU * gpus
        and max(count["requests.memory"], count["limits.memory"]) <= GIB * 2**30 * gpus
    )


def _as_given(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec with the GPUs that give-slices gives a pod that names none: all that are held."""
    if any(GPU in one.get(kind, {}) for one in _resources(spec) for kind in ("requests", "limits")):
        return dict(spec)
    first, *others = spec["containers"]
    amounts = {kind: {**first["resources"].get(kind, {}), GPU: str(HELD)} for kind in ("requests", "limits")}
    return {**spec, "containers": [{**first, "resources": amounts}, *others]}


def _given(admitted: Object, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec with the resources that its containers have once it is admitted."""
    resources = {
        one["name"]: one["resources"] for one in [*admitted["containers"], *admitted.get("initContainers", ())]
    }
    parts = {
        key: [{**one, "resources": resources[one["name"]]} for one in spec[key]]
        for key in ("containers", "initContainers")
        if key in spec
    }
    return {**spec, **parts}


def test_a_pod_gets_what_goes_with_its_gpus_as_kubernetes_counts_them(
    held: Guarded, pytestconfig: pytest.Config
) -> None:
    rng, wrong, granted = Random(int(pytestconfig.getoption("seed"))), [], 0
    for _ in range(SHAPES):
        spec = shape(rng)
        count = held.count(_as_given(spec))
        if count is None:
            continue
        answer = held.dry_run(pod(**spec, labels={"gpu-portal.io/allocation": "held"}))
        expected = _fits(count, HELD) and _has_limits(spec)
        if (answer.status == 201) != expected or (answer.status != 201 and REFUSES not in answer.message):
            wrong.append(f"{spec}\n  counted {count}, answered {answer.status} {answer.message}")
        elif expected:
            granted += 1
            after = held.count(_given(answer.body["spec"], spec))
            if after is None or not _fits(after, HELD):
                wrong.append(f"{spec}\n  was given {answer.body['spec']}, counted {after}")
    assert not wrong, "\n".join(wrong[:5])
    assert granted > SHAPES / 20


def test_a_queued_job_gets_what_goes_with_its_gpus_as_kubernetes_counts_them(
    held: Guarded, pytestconfig: pytest.Config
) -> None:
    rng, wrong, granted = Random(int(pytestconfig.getoption("seed")) + 1), [], 0
    for _ in range(SHAPES):
        spec = {**shape(rng), "nodeSelector": L40S}
        if not any(one.get("limits", {}).get(GPU, "0") != "0" for one in _resources(spec)):
            continue
        answer = held.dry_run(_queued(spec))
        if answer.status == 422:
            continue
        count = held.count(spec)
        # Of a pod that the API server would refuse a Job is refused too: it would hold quota without pods.
        expected = count is not None and _fits(count, PER_NODE) and _has_limits(spec)
        if (answer.status == 201) != expected or (answer.status != 201 and REFUSES not in answer.message):
            wrong.append(f"{spec}\n  counted {count}, answered {answer.status} {answer.message}")
        elif expected:
            granted += 1
            template = answer.body["spec"]["template"]["spec"]
            after = held.count(_given(template, spec))
            if after is None or not _fits(after, PER_NODE):
                wrong.append(f"{spec}\n  was given {template}, counted {after}")
    assert not wrong, "\n".join(wrong[:5])
    assert granted > SHAPES / 20


def _queued(spec: Mapping[str, Any]) -> Object:
    body = pod(**spec)["spec"]
    labels = {"kueue.x-k8s.io/queue-name": "gpu"}
    metadata = {"name": "shape", "labels": labels}
    job = {"suspend": True, "template": {"spec": body}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job}
