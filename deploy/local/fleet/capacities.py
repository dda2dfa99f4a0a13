"""Capacity of devices, as the DRA driver measures it through NVML: engines, multiprocessors, memory.

Source: kubernetes-sigs/dra-driver-nvidia-gpu cmd/gpu-kubelet-plugin/{mig,partitions,consumable_shares}.go.
"""

from typing import Any

from deploy.local.fleet.quantities import of_mib
from quotas.catalog.mig_tables import Geometry, Profile

# Capacity name → {"value": quantity}, and its request policy where there is one.
Capacity = dict[str, dict[str, Any]]


def of_profile(profile: Profile) -> Capacity:
    return _capacity(_amounts(profile))


def of_partitionable_card(geometry: Geometry) -> Capacity:
    """Return the capacity of a card that can be divided: each dimension's maximum over all profiles, as in the
    driver.
    """
    highest: dict[str, int] = {}
    for profile in geometry.profiles:
        for name, amount in _amounts(profile).items():
            highest[name] = max(amount, highest.get(name, 0))
    return _capacity(highest)


def of_card(memory_mib: int, shares: int = 0) -> Capacity:
    """Return the capacity of a card that is allocated whole, or in `shares`, each with a requested amount of memory."""
    memory: dict[str, Any] = {"value": of_mib(memory_mib)}
    if not shares:
        return {"memory": memory}
    memory["requestPolicy"] = {
        "default": "0",
        "validRange": {"min": "0", "max": of_mib(memory_mib), "step": "1Mi"},
    }
    counted = {"default": "1", "validRange": {"min": "1", "max": str(shares), "step": "1"}}
    return {"memory": memory, "shares": {"value": str(shares), "requestPolicy": counted}}


def _amounts(profile: Profile) -> dict[str, int]:
    """Return the amounts of a profile, without engines for which there is no source."""
    amounts = {
        "copyEngines": profile.copy_engines,
        "decoders": profile.decoders,
        "encoders": profile.encoders,
        "jpegEngines": profile.jpeg_engines,
        "memory": profile.memory_mib,
        "multiprocessors": profile.multiprocessors,
        "ofaEngines": profile.ofa_engines,
    }
    return {name: amount for name, amount in amounts.items() if amount is not None}


def _capacity(amounts: dict[str, int]) -> Capacity:
    return {name: {"value": of_mib(n) if name == "memory" else str(n)} for name, n in sorted(amounts.items())}
