"""The isolation of a slice from others on its GPU, with a note for people. Pure.

Slices that share a card by taking turns are not isolated: time-slicing, MPS, consumable shares and vGPU are "none".
Sources: NVIDIA k8s-device-plugin README (shared access); NVIDIA MPS documentation (memory protection, errors).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from allocations.domain.allocation_spec import Sharing
from allocations.domain.custom_claim import CustomClaim

FULL, HARDWARE, NONE = "full", "hardware", "none"


class Isolation(NamedTuple):
    """``note`` says why, where it is none; empty otherwise."""

    level: str
    note: str = ""


def of_slice(level: str, sharing: str, replicas: int, memory_mib: int) -> Isolation:
    """Of a slice as it is offered; ``memory_mib`` is what its ``replicas`` share, 0 where that is unknown."""
    if level != NONE:
        return Isolation(level)
    return Isolation(NONE, {"mps": _mps, "vgpu": _vgpu}.get(sharing, _turns)(replicas, memory_mib))


def of_allocation(offered: Isolation, sharing: Sharing, claim: CustomClaim | None) -> Isolation:
    """Of what is held: pods that share its devices are not isolated from each other, whatever the slice is."""
    document = claim.document if claim else {}
    configs = [config["sharing"] for config in document.get("config", ()) if config.get("sharing")]
    chosen = [sharing.strategy] if sharing else [str(config["strategy"]) for config in configs]
    if not chosen:
        return offered if claim is None or offered.level == NONE else Isolation(_of_claim(document), offered.note)
    strategies = sorted(set(chosen))
    return Isolation(NONE, f"Its pods share its devices by {' and '.join(strategies)}: {_SHARED}")


def _of_claim(claim: Mapping[str, Any]) -> str:
    """Full when it can only get whole GPUs."""
    wanted = [one for request in claim.get("requests", ()) for one in (request.get("alternatives") or [request])]
    if any(one.get("capacity") for one in wanted):
        return NONE
    return FULL if all(one.get("device", "gpu") == "gpu" for one in wanted) else HARDWARE


_SHARED = "one can use up memory that another needs, and a fault of one ends all."


def _turns(replicas: int, memory_mib: int) -> str:
    of = f" and {memory_mib:,} MiB".replace(",", " ") if memory_mib else ""
    return f"{replicas} users take turns on one GPU{of}: {_SHARED}"


def _mps(replicas: int, memory_mib: int) -> str:
    """The device plugin gives each client an equal part: k8s-device-plugin, cmd/mps-control-daemon/mps/daemon.go."""
    of = f", {memory_mib // replicas} MiB of memory" if memory_mib else ""
    return (
        f"{replicas} users compute on one GPU at the same time by MPS. Each gets at most {100 // replicas} % of its "
        f"threads{of}. A fault of one ends all."
    )


def _vgpu(replicas: int, memory_mib: int) -> str:
    return "A virtual GPU: the hypervisor gives it memory of its own, but others take turns with it on the same cores."
