"""Which part of its card each held device is, so that what is held of a card never comes to more than the card.

A MIG slice is worth the larger of its compute and memory parts, which is what others are denied (``catalog.geometry``).
On mixed layouts that may add up to 15/14; the last to come then gets what is left of the card.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

from allocations.capacity import geometry_lookup
from allocations.capacity.devices import parent_gpu
from allocations.domain.objects import Slice
from allocations.models import Allocation
from quotas.catalog.layouts import device_label, known_placement, label_of_device
from quotas.catalog.mig_tables import Geometry
from quotas.catalog.models import Kind, Offering
from quotas.metering.models import UsageInterval
from quotas.metering.services import SlotHeld

Begin = tuple[Allocation, Slice]


def gpu_fractions(begins: Sequence[Begin]) -> list[Fraction]:
    """The part of a GPU that one slice of each is; one query, and one more where there are own claims.

    Raises SlotHeld when the interval of a device that overlaps has not ended yet: its end has to be seen first.
    """
    there = _open({(row.project.cluster_id, held.node) for row, held in begins if held.device})
    profiles = _profiles({row.offering.flavor_id for row, _ in begins if row.offering.kind == Kind.CLAIM})
    found: list[Fraction] = []
    for row, held in begins:
        worth = _worth(row, held, profiles)
        if held.device:
            on_card = there[row.project.cluster_id, held.node, parent_gpu(held.device)]
            if (
                geometry := geometry_lookup.of_flavor(row.offering.flavor)
                if row.offering.flavor.partitionable
                else None
            ):
                _require_free(geometry, held, on_card)
            left = 1 - sum((part for _, _, part in on_card), Fraction(0))
            worth = min(worth, left) if left > 0 else worth
            on_card.append((held.device, row, worth))
        found.append(worth)
    return found


OnCard = list[tuple[str, Allocation | UsageInterval, Fraction]]


def _open(nodes: set[tuple[str, str]]) -> dict[tuple[str, str, str], OnCard]:
    """Return device, holder and fraction of every open interval on the nodes, by cluster, node and card. ``nodes`` are
    pairs of cluster and node.
    """
    there: dict[tuple[str, str, str], OnCard] = defaultdict(list)
    if nodes:
        for one in UsageInterval.objects.filter(end=None, node__in={node for _, node in nodes}):
            there[one.cluster_id, one.node, parent_gpu(one.device)].append((one.device, one, one.gpus))
    return there


def _require_free(geometry: Geometry, held: Slice, on_card: OnCard) -> None:
    for device, holder, _ in on_card:
        if _overlap(geometry, held.device, device):
            raise SlotHeld(held.slot, holder.holder_id if isinstance(holder, UsageInterval) else holder.pk)


def _overlap(geometry: Geometry, one: str, other: str) -> bool:
    """Whether two devices of a card take the same of it; what the geometry does not know may stand beside anything."""
    if parent_gpu(one) == one or parent_gpu(other) == other:
        return True
    places = known_placement(geometry, one), known_placement(geometry, other)
    return places[0] is not None and places[1] is not None and places[0].overlaps(places[1])


def _profiles(flavors: Collection[int]) -> dict[tuple[int, str], Fraction]:
    """The part of a card that a slice of each profile is, by flavor and the profile as devices' names have it."""
    if not flavors:
        return {}
    rows = Offering.objects.filter(flavor__in=flavors, kind=Kind.MIG)
    return {(row.flavor_id, device_label(row.profile)): row.gpu_share for row in rows}


def _worth(row: Allocation, held: Slice, profiles: Mapping[tuple[int, str], Fraction]) -> Fraction:
    """Of an own claim each device is worth what it is, as its own offering has it; else what the offering says."""
    if row.offering.kind != Kind.CLAIM:
        return row.offering.gpu_share
    if shares := held.consumed.get("shares"):
        return Fraction(int(shares), max(int(shares), row.offering.replicas))
    return profiles.get((row.offering.flavor_id, label_of_device(held.device)), Fraction(1))
