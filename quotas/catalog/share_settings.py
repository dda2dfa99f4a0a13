"""Validates the CPU and memory per GPU that operators set for a flavor. Pure.

At most what its smallest node has for each GPU, since more could not be given to all. At least what a container of the
flavor's smallest slice needs to start.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from quotas.catalog import quantities
from quotas.catalog.node_shares import NodeShare

MIN_CPU_MILLICORES, MIN_MEMORY_MIB = 10, 16
"""The minimum of one slice."""


@dataclass(frozen=True)
class FlavorFact:
    """A flavor. ``found`` is an even part of its smallest node; ``smallest`` the part of a GPU of its
    smallest slice.
    """

    name: str
    found: NodeShare
    smallest: Fraction


def problems(flavor: FlavorFact, decided: Mapping[str, int | None]) -> dict[str, list[str]]:
    """Return the errors of ``cpu_millicores_per_gpu`` and ``memory_mib_per_gpu``, by name; None is an even part."""
    found = {
        "cpu_millicores_per_gpu": (
            flavor.found.cpu_millicores,
            _least(MIN_CPU_MILLICORES, flavor.smallest),
            "CPU",
            quantities.cpu_text,
        ),
        "memory_mib_per_gpu": (
            flavor.found.memory_mib,
            _least(MIN_MEMORY_MIB, flavor.smallest),
            "memory",
            quantities.memory_text,
        ),
    }
    return {
        name: [words]
        for name, (most, least, what, text) in found.items()
        if (value := decided.get(name)) is not None and (words := _problem(flavor.name, what, value, most, least, text))
    }


def _problem(flavor: str, what: str, value: int, most: int, least: int, text: Callable[[int], str]) -> str:
    if not most:
        return f"No node of {flavor} has reported yet how much {what} it has. Set it when its nodes have been observed."
    if value > most:
        return (
            f"The smallest node of {flavor} has {text(most)} of {what} for each of its GPUs, beside what the system "
            f"needs. Give {text(most)} or less, or leave it empty (null) for that."
        )
    if value < least:
        return (
            f"That is too little {what} for the smallest slice of {flavor} to start a container. "
            f"Give {text(least)} to {text(most)}, or leave it empty (null) for the latter."
            if least < most
            else f"Give {text(most)}, or leave it empty (null) for that."
        )
    return ""


def _least(of_slice: int, part: Fraction) -> int:
    return ceil(of_slice / part)
