"""Builds the devices of a fleet from the mirrored facts of ResourceSlices and ResourceClaims. Pure.

As for the scheduler, a pool counts only if all ResourceSlices of its newest generation exist (resource.k8s.io/v1,
ResourcePool).
"""

from collections import defaultdict
from collections.abc import Iterable

from allocations.claims.fit import Fleet
from allocations.claims.model import CLASSES, Device, qualified
from allocations.domain.observed_facts import PublishedDevice, ResourceClaimFacts, ResourceSliceFacts
from quotas.catalog import resource_pools
from quotas.catalog.nvidia import DRA_DRIVER


def fleet(slices: Iterable[ResourceSliceFacts], claims: Iterable[ResourceClaimFacts] = ()) -> Fleet:
    """Return the published devices and their use, from facts of ResourceSlices and ResourceClaims."""
    newest = resource_pools.newest(slices, lambda facts: (facts["pool"], facts["generation"])).values()
    complete = [facts for pool in newest if len(pool) >= pool[0]["slice_count"] for facts in pool]
    return Fleet(
        devices=tuple(
            _device(facts["node"], device)
            for facts in complete
            for device in facts["devices"]
            if device["attributes"].get("type") in CLASSES
        ),
        counters={
            (facts["node"], counter_set["name"], name): amount
            for facts in complete
            for counter_set in facts["shared_counters"]
            for name, amount in counter_set["counters"].items()
        },
        shares_in_use=_shares_in_use(claims),
    )


def _device(node: str, device: PublishedDevice) -> Device:
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


def _shares_in_use(claims: Iterable[ResourceClaimFacts]) -> dict[tuple[str, str], int]:
    shares: dict[tuple[str, str], int] = defaultdict(int)
    for claim in claims:
        for device in claim.get("devices", ()):
            if device["driver"] == DRA_DRIVER:
                shares[device["pool"], device["device"]] += int(device.get("consumed", {}).get("shares", 1))
    return shares
