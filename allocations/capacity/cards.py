"""GPUs and the slices requested of them, as plain types. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from quotas.catalog import layouts
from quotas.catalog.layouts import Placement
from quotas.catalog.mig_tables import Geometry

SAME_GPU, SAME_PCIE_ROOT, SAME_CLIQUE, DISTINCT_GPUS = "same_gpu", "same_pcie_root", "same_clique", "distinct_gpus"
"""Fields of ``allocations.domain.allocation_spec.Constraints``."""

Occupancy = frozenset[Placement] | None
"""The placements that somebody has on a card that is cut on demand; None where somebody has the whole card."""


@dataclass(frozen=True)
class Card:
    """A GPU that Kubernetes names. ``taken`` are its devices that claims have, a shared one once for each claim;
    ``parts`` the MIG devices made on it beforehand, with their profiles. ``blocked``: so many of the node's cards
    cannot have their share of CPU, memory or pods, so that much of what is free cannot be used.
    """

    node: str
    name: str
    uuid: str
    pcie_root: str = ""
    clique: str = ""
    taken: tuple[str, ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict, hash=False)
    blocked: Fraction = field(default=Fraction(0), hash=False)

    @property
    def key(self) -> tuple[str, str]:
        return self.node, self.name


@dataclass(frozen=True)
class SliceShape:
    """One slice of an offering. ``replicas`` slices share a card."""

    kind: str
    profile: str = ""
    replicas: int = 1


def card_of(device: str) -> str:
    """Return the card of a DRA device's name: itself, or the one that a MIG device was cut from."""
    return device.partition("-mig-")[0]


def occupancy(geometry: Geometry, card: Card) -> Occupancy:
    """Return the placements of the card's MIG devices that are in use; None if the whole card is, or may be."""
    places = [layouts.known_placement(geometry, device) for device in card.taken]
    return None if None in places else frozenset(place for place in places if place is not None)


def group_of(card: Card, constraints: Collection[str], *, spread: bool) -> tuple[str, ...] | None:
    """Return the group of cards that one request's slices must be in; None for a card that none may be on."""
    if SAME_CLIQUE in constraints and not card.clique:
        return None
    if SAME_PCIE_ROOT in constraints and not card.pcie_root:
        return None
    if SAME_GPU in constraints:
        return card.key
    if SAME_PCIE_ROOT in constraints:
        return card.node, card.pcie_root
    if not spread:
        return (card.node,)
    return (card.clique,) if SAME_CLIQUE in constraints else ()
