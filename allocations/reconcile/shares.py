"""Which part of its card each held device is, so that what is held of a card never comes to more than the card.

A MIG slice is worth the larger of its compute and memory parts, which is what others are denied (``catalog.geometry``).
On mixed layouts that may add up to 15/14; the last to come then gets what is left of the card.
"""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

from django.conf import settings

from allocations import geometries, placing
from allocations.models import Allocation
from allocations.reconcile.facts import Slice
from quotas.catalog.layouts import placement_of_device
from quotas.catalog.mig_tables import Geometry
from quotas.metering.models import UsageInterval
from quotas.metering.services import SlotHeld

Begin = tuple[Allocation, Slice]


def of(begins: Sequence[Begin]) -> list[Fraction]:
    """The part of a GPU that one slice of each is; one query.

    Raises SlotHeld when the interval of a device that overlaps has not ended yet: its end has to be seen first.
    """
    there = _open({held.node for _, held in begins if held.device})
    found: list[Fraction] = []
    for row, held in begins:
        worth = _worth(row, held)
        if held.device:
            on_card = there[held.node, placing.card_of(held.device)]
            if geometry := geometries.of_flavor(row.offering.flavor) if row.offering.flavor.partitionable else None:
                _require_free(geometry, held, on_card)
            left = 1 - sum((part for _, _, part in on_card), Fraction(0))
            worth = min(worth, left) if left > 0 else worth
            on_card.append((held.device, row, worth))
        found.append(worth)
    return found


OnCard = list[tuple[str, Allocation | UsageInterval, Fraction]]


def _open(nodes: set[str]) -> dict[tuple[str, str], OnCard]:
    """Device, holder and part of every open interval on the nodes, by node and card."""
    there: dict[tuple[str, str], OnCard] = defaultdict(list)
    if nodes:
        for one in UsageInterval.objects.filter(end=None, cluster=settings.CLUSTER_NAME, node__in=nodes):
            there[one.node, placing.card_of(one.device)].append((one.device, one, one.gpus))
    return there


def _require_free(geometry: Geometry, held: Slice, on_card: OnCard) -> None:
    place = placement_of_device(geometry, held.device)[1]
    for device, holder, _ in on_card:
        other = placement_of_device(geometry, device)[1]
        if place is None or other is None or place.overlaps(other):
            raise SlotHeld(held.slot, holder.allocation if isinstance(holder, UsageInterval) else holder.pk)


def _worth(row: Allocation, held: Slice) -> Fraction:
    """Of an own claim each device is worth what it is; else what the offering says."""
    if row.offering.kind != "claim":
        return row.offering.gpu_share
    if shares := held.consumed.get("shares"):
        return Fraction(int(shares), max(int(shares), row.offering.replicas))
    geometry = geometries.of_flavor(row.offering.flavor)
    return placing.share_of(geometry, held.device) if geometry and held.device else Fraction(1)
