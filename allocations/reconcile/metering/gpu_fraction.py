"""Computes the fraction of its GPU that each held device takes, and that no device is held twice.

A MIG slice takes the larger of its compute and memory fractions, since others cannot use that part of the GPU
(``quotas.catalog.geometry``). On mixed layouts these may add up to 15/14. What is charged of them follows from the
times of all uses of the GPU (``quotas.metering.gpu_shares``).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from uuid import UUID

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
    """Return the fraction of a GPU that one slice of each is; one query if there are devices of GPUs with dynamic MIG,
    and one if there are custom claims.

    Raises SlotHeld if the interval of an overlapping device is still open: its end has to be observed first.
    """
    _require_free([(row, held) for row, held in begins if held.device and row.offering.flavor.partitionable])
    profiles = _profiles({row.offering.flavor_id for row, _ in begins if row.offering.kind == Kind.CLAIM})
    return [_fraction(row, held, profiles) for row, held in begins]


def _require_free(begins: Iterable[HeldSlice]) -> None:
    gpus = _open_by_gpu({(row.project.cluster_id, held.node) for row, held in begins})
    for row, held in begins:
        on_gpu = gpus[row.project.cluster_id, held.node, parent_gpu(held.device)]
        if geometry := geometry_lookup.of_flavor(row.offering.flavor):
            for device, holder in on_gpu:
                if _overlap(geometry, held.device, device):
                    raise SlotHeld(held.slot, holder)
        on_gpu.append((held.device, row.pk))


GpuDevices = list[tuple[str, UUID]]
"""Devices of a GPU and their holders."""


def _open_by_gpu(nodes: set[tuple[str, str]]) -> dict[tuple[str, str, str], GpuDevices]:
    """Return device and holder of every open interval, by cluster, node and GPU.

    ``nodes`` are pairs of cluster and node.
    """
    gpus: dict[tuple[str, str, str], GpuDevices] = defaultdict(list)
    if nodes:
        for one in UsageInterval.objects.filter(end=None, node__in={node for _, node in nodes}):
            gpus[one.cluster_id, one.node, parent_gpu(one.device)].append((one.device, one.holder_id))
    return gpus


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


def _fraction(row: Allocation, held: Slice, profiles: Mapping[tuple[int, str], Fraction]) -> Fraction:
    """Return the offering's fraction; of a custom claim, that of the offering that the device itself belongs to."""
    if row.offering.kind != Kind.CLAIM:
        return row.offering.gpu_share
    if shares := held.consumed.get("shares"):
        return Fraction(int(shares), max(int(shares), row.offering.replicas))
    return profiles.get((row.offering.flavor_id, label_of_device(held.device)), Fraction(1))
