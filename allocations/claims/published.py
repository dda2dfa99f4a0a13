"""Devices out of the mirrored ResourceSlices of a driver. Pure.

A pool counts when all ResourceSlices of its newest generation are there, as for the scheduler (resource.k8s.io/v1,
ResourcePool).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from allocations.claims.fit import Fleet
from allocations.claims.model import CLASSES, Device, qualified
from quotas.catalog import resource_pools
from quotas.catalog.nvidia import DRA_DRIVER

Facts = Mapping[str, Any]


def fleet(slices: Iterable[Facts], claims: Iterable[Facts] = ()) -> Fleet:
    """What nodes publish, by the facts of ResourceSlices, and what claims have of it, by those of ResourceClaims."""
    newest = resource_pools.newest(slices, lambda one: (one["pool"], one["generation"])).values()
    complete = [one for pool in newest if len(pool) >= pool[0]["slice_count"] for one in pool]
    return Fleet(
        devices=tuple(
            _device(one["node"], device)
            for one in complete
            for device in one["devices"]
            if device["attributes"].get("type") in CLASSES
        ),
        counters={
            (one["node"], shared["name"], name): amount
            for one in complete
            for shared in one["shared_counters"]
            for name, amount in shared["counters"].items()
        },
        taken=_taken(claims),
    )


def _device(node: str, device: Facts) -> Device:
    return Device(
        node=node,
        name=device["name"],
        kind=device["attributes"]["type"],
        attributes={qualified(name): value for name, value in device["attributes"].items()},
        versions=frozenset(qualified(name) for name in device["versions"]),
        capacity={qualified(name): amount for name, amount in device["capacity"].items()},
        counters={(c["set"], name): amount for c in device["counters"] for name, amount in c["counters"].items()},
        taints=tuple((key, value, effect) for key, value, effect in device["taints"]),
        shareable=device["shareable"],
    )


def _taken(claims: Iterable[Facts]) -> dict[tuple[str, str], int]:
    taken: dict[tuple[str, str], int] = defaultdict(int)
    for claim in claims:
        for device in claim.get("devices", ()):
            if device["driver"] == DRA_DRIVER:
                taken[device["pool"], device["device"]] += int(device.get("consumed", {}).get("shares", 1))
    return taken
