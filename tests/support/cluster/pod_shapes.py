"""Pods drawn at random, with more and less than what goes with their GPUs."""

from random import Random
from typing import Any

from tests.support.cluster.api_client import Object
from tests.support.cluster.guarded import container

GPU = "nvidia.com/gpu"
CPU, GIB = 10, 10
"""CPU and GiB of memory that go with each GPU."""
L40S = {"nvidia.com/gpu.product": "NVIDIA-L40S"}


def shape(rng: Random) -> dict[str, Any]:
    """Return containers and init containers of a pod, sidecars among them in any order, and resources of the whole."""
    inits = [_container(rng, f"init-{n}") for n in range(rng.choice([0, 0, 1, 2, 3]))]
    for one in inits:
        if rng.random() < 0.5:
            one["restartPolicy"] = "Always"
    spec: dict[str, Any] = {"containers": [_container(rng, f"main-{n}") for n in range(rng.choice([1, 1, 2, 3]))]}
    if inits:
        spec["initContainers"] = inits
    if rng.random() < 0.2:
        kinds = rng.choice([("requests",), ("limits",), ("requests", "limits")])
        spec["resources"] = {
            kind: {**_drawn(rng, "cpu", (10, 20, 30)), **_drawn(rng, "memory", (10, 20, 30))} for kind in kinds
        }
    return spec


def _container(rng: Random, name: str) -> Object:
    requests = {**_drawn(rng, "cpu", (0, 1, 5, 10, 20)), **_drawn(rng, "memory", (1, 2, 5, 10))}
    limits = {**_drawn(rng, "cpu", (20, 40), 0.2), **_drawn(rng, "memory", (0, 5, 10, 10, 15), 0.4)}
    gpus = {GPU: str(rng.choice([0, 1, 1, 1, 2, 3]))} if rng.random() < 0.5 else {}
    resources = {"requests": {**requests, **gpus}, "limits": {**limits, **gpus}}
    return container(name, {kind: amounts for kind, amounts in resources.items() if amounts})


def _drawn(rng: Random, resource: str, amounts: tuple[int, ...], probability: float = 0.6) -> dict[str, str]:
    if rng.random() >= probability:
        return {}
    return {resource: f"{rng.choice(amounts)}{'Gi' if resource == 'memory' else ''}"}
