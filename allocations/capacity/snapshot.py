"""The total and free capacity of each offering."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from allocations.capacity import flavor_devices
from allocations.capacity.offering_index import amounts_per_slice
from allocations.capacity.packing import FlavorDevices
from allocations.capacity.usage import CurrentUsage
from allocations.domain.backend_capabilities import NAMING_PATHS
from quotas.catalog.models import Offering
from quotas.catalog.selectors import fitting_slices, units


@dataclass(frozen=True)
class Capacity:
    """The capacity of one offering, in slices.

    ``total`` counts healthy devices that nobody uses outside the portal, and for which their node has CPU, memory and
    pods. With dynamic MIG, ``total`` is the capacity of an idle fleet, and ``free`` what fits beside the slices placed
    now.
    """

    total: int
    held: int
    free: int


class CapacitySnapshot:
    """The capacity of offerings at one moment, for any team. With ``cliques``, NVLink cliques are read too."""

    def __init__(self, usage: CurrentUsage | None = None, *, cliques: bool = False) -> None:
        self._usage = usage or CurrentUsage()
        self._cliques = cliques
        self._capacities: dict[str, Capacity] = {}

    @cached_property
    def _devices(self) -> dict[int, FlavorDevices]:
        dra_flavors = [flavor for flavor in self._usage.index.flavors() if flavor.path in NAMING_PATHS]
        return flavor_devices.of_flavors(dra_flavors, cliques=self._cliques)

    def capacity(self, offering: Offering) -> Capacity:
        """Return the capacity of the offering."""
        if offering.key not in self._capacities:
            self._capacities[offering.key] = self._capacity(offering)
        return self._capacities[offering.key]

    def _capacity(self, offering: Offering) -> Capacity:
        pool, held = offering.pool, self._usage.held.get(offering.key, 0)
        if offering.flavor.partitionable:
            devices, shape = self._devices[offering.flavor_id], flavor_devices.slice_shape(offering)
            return Capacity(total=devices.total(shape, empty=True), held=held, free=devices.total(shape))
        per_slice, used = amounts_per_slice(offering), self._usage.held_amounts.get(pool.key, {})
        total = fitting_slices(units(pool), pool.resources, per_slice)
        free = fitting_slices(units(pool), pool.resources, per_slice, used)
        return Capacity(total=total, held=held, free=min(free, total))

    def max_colocated(
        self, offering: Offering, constraints: Collection[str], *, spread: bool, empty: bool = False
    ) -> int | None:
        """Return the most slices that one request can get under its constraints; with ``empty``, on an idle fleet.

        None if Kubernetes does not name the devices of the offering.
        """
        devices = self._devices.get(offering.flavor_id)
        if devices is None:
            return None
        return devices.max_colocated(flavor_devices.slice_shape(offering), constraints, spread=spread, empty=empty)

    def offerings(self) -> list[Offering]:
        """Return what is offered, sorted by key."""
        return self._usage.index.offered()
