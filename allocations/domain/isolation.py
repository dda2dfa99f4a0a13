"""Determines how isolated a slice is from others on its GPU, with a note for people. Pure.

Slices that share a GPU are not isolated: time-slicing, MPS, consumable shares and vGPU are "none".
Sources: NVIDIA k8s-device-plugin README (shared access); NVIDIA MPS documentation (memory protection, errors).
"""

from typing import NamedTuple

from allocations.domain.allocation_spec import Sharing
from allocations.domain.custom_claim import CustomClaim

LEVELS = FULL, HARDWARE, NONE = "full", "hardware", "none"


class Isolation(NamedTuple):
    """A level of isolation. ``note`` explains the level "none", and is empty for others."""

    level: str
    note: str = ""


def of_slice(level: str, sharing: str, replicas: int, memory_mib: int) -> Isolation:
    """Return the isolation of an offered slice; ``memory_mib`` is shared by ``replicas``, 0 if it is unknown."""
    if level != NONE:
        return Isolation(level)
    return Isolation(NONE, {"mps": _mps, "vgpu": _vgpu}.get(sharing, _time_slicing)(replicas, memory_mib))


def of_allocation(offered: Isolation, sharing: Sharing, claim: CustomClaim | None) -> Isolation:
    """Return the isolation of an allocation; pods that share its devices are never isolated from each other."""
    of_claim = claim.sharing_strategies if claim else set()
    strategies = {sharing.strategy} if sharing else of_claim
    if not strategies:
        return offered if claim is None or offered.level == NONE else Isolation(_of_claim(claim), offered.note)
    return Isolation(NONE, f"Its pods share its devices by {' and '.join(sorted(strategies))}: {_SHARED}")


def _of_claim(claim: CustomClaim) -> str:
    """Return the level of a custom claim: full if it can only get whole GPUs, none if it requests shares."""
    if claim.requests_shares:
        return NONE
    return FULL if claim.requests_only_gpus else HARDWARE


_SHARED = "one can use up memory that another needs, and a crash in one can stop the others."


def _time_slicing(replicas: int, memory_mib: int) -> str:
    memory = f" and {memory_mib:,} MiB".replace(",", " ") if memory_mib else ""
    return f"{replicas} users take turns on one GPU{memory}: {_SHARED}"


def _mps(replicas: int, memory_mib: int) -> str:
    """Return the note for MPS.

    The device plugin gives each client an equal part (k8s-device-plugin, cmd/mps-control-daemon/mps/daemon.go).
    """
    memory = f", {memory_mib // replicas} MiB of memory" if memory_mib else ""
    return (
        f"{replicas} users compute on one GPU at the same time by MPS. Each gets at most {100 // replicas} % of its "
        f"threads{memory}. A crash in one can stop the others."
    )


def _vgpu(replicas: int, memory_mib: int) -> str:
    return "A virtual GPU: the hypervisor gives it memory of its own, but others take turns with it on the same cores."
