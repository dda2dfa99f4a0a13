"""The fleet's total and free capacity of each offering."""

from collections.abc import Collection
from dataclasses import dataclass

from allocations.capacity import flavor_devices
from allocations.capacity.offering_index import amounts_per_slice
from allocations.capacity.usage import CurrentUsage
from allocations.domain.backend_capabilities import NAMING_PATHS
from quotas.catalog.models import Offering
from quotas.catalog.selectors import room, units


@dataclass(frozen=True)
class Capacity:
    """Slices of one offering. ``total`` is on healthy devices and without what others use beside the portal: GPUs, and
    the CPU, memory and pods that go with GPUs which nobody has.

    Where cards are cut on demand, ``total`` is what an idle fleet has, and ``free`` what fits beside what is placed
    on them now, with its share of its node."""

    total: int
    held: int
    free: int


class CapacitySnapshot:
    """Capacity of offerings, for any team. ``cliques``: NVLink cliques will be needed, which nodes are read for."""

    def __init__(self, usage: CurrentUsage | None = None, *, cliques: bool = False) -> None:
        self._usage = usage or CurrentUsage()
        named = [flavor for flavor in self._usage.index.flavors() if flavor.path in NAMING_PATHS]
        self._devices = flavor_devices.of_flavors(named, cliques=cliques)

    def capacity(self, offering: Offering) -> Capacity:
        pool, held = offering.pool, self._usage.held.get(offering.key, 0)
        if offering.flavor.partitionable:
            devices, shape = self._devices[offering.flavor_id], flavor_devices.slice_shape(offering)
            return Capacity(total=devices.total(shape, empty=True), held=held, free=devices.total(shape))
        per_slice, taken = amounts_per_slice(offering), self._usage.held_amounts.get(pool.key, {})
        total = room(units(pool), pool.resources, per_slice)
        free = room(units(pool), pool.resources, per_slice, taken)
        return Capacity(total=total, held=held, free=min(free, total))

    def max_colocated(
        self, offering: Offering, constraints: Collection[str], *, spread: bool, empty: bool = False
    ) -> int | None:
        """The most slices that one request can get at once under its constraints; with ``empty`` if nobody used any.
        None where Kubernetes names no device."""
        devices = self._devices.get(offering.flavor_id)
        if devices is None:
            return None
        return devices.max_colocated(flavor_devices.slice_shape(offering), constraints, spread=spread, empty=empty)

    def offerings(self) -> list[Offering]:
        """What is offered, sorted by key."""
        return self._usage.index.offered()
