"""The fraction of GPU memory that the units of a claim's lease amount to. Pure.

A unit of `gpu-portal.io/memory-slices` is one of the card's memory slices, of `gpu-portal.io/gpu-shares` one of the
shares of a card, of a MIG profile's resource a device of that profile, and of any other resource a whole card.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from quotas.catalog.dra_resources import GPU_SHARES
from quotas.catalog.geometry import (
    COMPUTE_SLICES,
    MEMORY_SLICES,
    card_slices,
    profile_of_resource,
    profile_part,
)


@dataclass(frozen=True)
class CardFact:
    """A flavor's card: its product label and memory, its memory slices (0 without dynamic MIG), and its number of
    shares.
    """

    product: str
    memory_mib: int = 0
    memory_slices: int = 0
    replicas: int = 1


def card_part(units: Mapping[str, int], card: CardFact) -> Fraction:
    """Return the memory of ``units`` ({resource: amount}) in cards; 3/2 is a card and a half."""
    return sum((amount * _of_unit(resource, card) for resource, amount in units.items()), Fraction(0))


def _of_unit(resource: str, card: CardFact) -> Fraction:
    if resource == COMPUTE_SLICES:
        return Fraction(0)
    if resource == MEMORY_SLICES:
        return Fraction(1, card.memory_slices or card_slices(card.product).memory)
    if resource == GPU_SHARES:
        return Fraction(1, card.replicas)
    _, is_mig, profile = resource.partition("/mig-")
    if not is_mig:
        return Fraction(1)
    return profile_part(card.product, profile_of_resource(profile), card.memory_mib)
