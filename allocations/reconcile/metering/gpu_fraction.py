"""Computes the fraction of its GPU that each held device is charged as; the sum on a GPU never exceeds 1.

A MIG slice is charged as the larger of its compute and memory fractions, since others cannot use that part of the GPU
(``quotas.catalog.geometry``). On mixed layouts these may add up to 15/14; the last slice is then charged as the rest.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

from allocations.capacity import geometry_lookup
from allocations.domain.objects import Slice
from allocations.models import Allocation
from quotas.catalog.layouts import device_label, known_placement, label_of_device, parent_gpu
from quotas.catalog.mig_tables import Geometry
from quotas.catalog.models import Kind, Offering
from quotas.metering.models import UsageInterval
from quotas.metering.services import SlotHeld

HeldSlice = tuple[Allocation, Slice]


def gpu_fractions(begins: Sequence[HeldSlice]) -> list[Fraction]:
    """Return the fraction of a GPU that one slice of each is; one query, and one more if there are custom claims.

    Raises SlotHeld if the interval of an overlapping device is still open: its end has to be observed first.
    """
    gpus = _open_by_gpu({(row.project.cluster_id, held.node) for row, held in begins if held.device})
    profiles = _profiles({row.offering.flavor_id for row, _ in begins if row.offering.kind == Kind.CLAIM})
    found: list[Fraction] = []
    for row, held in begins:
        fraction = _nominal_fraction(row, held, profiles)
        if held.device:
            on_gpu = gpus[row.project.cluster_id, held.node, parent_gpu(held.device)]
            if (
                geometry := geometry_lookup.of_flavor(row.offering.flavor)
                if row.offering.flavor.partitionable
                else None
            ):
                _require_free(geometry, held, on_gpu)
            left = 1 - sum((each for _, _, each in on_gpu), Fraction(0))
            fraction = min(fraction, left) if left > 0 else fraction
            on_gpu.append((held.device, row, fraction))
        found.append(fraction)
    return found


GpuDevices = list[tuple[str, Allocation | UsageInterval, Fraction]]


def _open_by_gpu(nodes: set[tuple[str, str]]) -> dict[tuple[str, str, str], GpuDevices]:
    """Return device, holder and fraction of every open interval, by cluster, node and GPU.

    ``nodes`` are pairs of cluster and node.
    """
    gpus: dict[tuple[str, str, str], GpuDevices] = defaultdict(list)
    if nodes:
        for one in UsageInterval.objects.filter(end=None, node__in={node for _, node in nodes}):
            gpus[one.cluster_id, one.node, parent_gpu(one.device)].append((one.device, one, one.gpus))
    return gpus


def _require_free(geometry: Geometry, held: Slice, on_gpu: GpuDevices) -> None:
    for device, holder, _ in on_gpu:
        if _overlap(geometry, held.device, device):
            raise SlotHeld(held.slot, holder.holder_id if isinstance(holder, UsageInterval) else holder.pk)


def _overlap(geometry: Geometry, one: str, other: str) -> bool:
    """Return whether two devices of a GPU overlap; a device that the geometry does not have overlaps with none."""
    if parent_gpu(one) == one or parent_gpu(other) == other:
        return True
    places = known_placement(geometry, one), known_placement(geometry, other)
    return places[0] is not None and places[1] is not None and places[0].overlaps(places[1])


def _profiles(flavors: Collection[int]) -> dict[tuple[int, str], Fraction]:
    """Return the fraction of a GPU that a slice is, by flavor and by the profile as written in device names."""
    if not flavors:
        return {}
    rows = Offering.objects.filter(flavor__in=flavors, kind=Kind.MIG)
    return {(row.flavor_id, device_label(row.profile)): row.gpu_share for row in rows}


def _nominal_fraction(row: Allocation, held: Slice, profiles: Mapping[tuple[int, str], Fraction]) -> Fraction:
    """Return the offering's fraction; of a custom claim, that of the offering that the device itself belongs to."""
    if row.offering.kind != Kind.CLAIM:
        return row.offering.gpu_share
    if shares := held.consumed.get("shares"):
        return Fraction(int(shares), max(int(shares), row.offering.replicas))
    return profiles.get((row.offering.flavor_id, label_of_device(held.device)), Fraction(1))
