"""The devices of a flavor that a custom claim can get, read from the mirror in four queries.

Three more queries run if other pods use the CPU or memory that some of the devices need.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

from allocations.capacity import flavor_devices
from allocations.capacity.devices import SliceShape
from allocations.claims import device_schema, published, units
from allocations.claims.device_schema import DeviceSchema
from allocations.claims.fit import Fleet
from allocations.claims.model import PRODUCT
from allocations.claims.units import DeviceDemand, DeviceDemands
from allocations.domain.objects import Slice
from allocations.domain.observed_facts import ResourceClaimFacts, ResourceSliceFacts
from allocations.models import MirrorObject
from quotas.catalog.dra import as_label
from quotas.catalog.models import Flavor, Kind, Node, Offering


@dataclass(frozen=True)
class DeviceInventory:
    """The devices of a flavor, and what they count against quotas.

    - ``fleet``: the devices on all nodes; ``usable``: the nodes that accept pods now.
    - ``free_parts``: node → how many of its GPUs it has CPU and memory for, for nodes that have too little for all.
    - ``schema``: the attributes and capacities that the devices publish.
    - ``demands``: the units that each kind of device counts in its pool.
    """

    fleet: Fleet
    usable: frozenset[str]
    free_parts: Mapping[str, Fraction]
    schema: DeviceSchema
    demands: DeviceDemands

    def available(self, part: Fraction) -> Fleet:
        """Return the devices on nodes that accept pods and have CPU and memory for ``part`` GPUs."""
        usable = {node for node in self.usable if part <= self.free_parts.get(node, part)}
        return replace(self.fleet, devices=tuple(d for d in self.fleet.devices if d.node in usable))


def of_flavor(flavor: Flavor) -> DeviceInventory:
    """Return the devices that the flavor's nodes publish, with their use and their demands."""
    nodes = list(Node.objects.filter(flavor=flavor, present=True))
    objects = MirrorObject.objects.filter(cluster=flavor.cluster_id)
    slices = objects.filter(kind="ResourceSlice", facts__node__in=[node.name for node in nodes]).order_by("name")
    claims = objects.filter(kind="ResourceClaim").exclude(facts__devices=[])
    fleet = published.fleet(
        cast(Iterable[ResourceSliceFacts], slices.values_list("facts", flat=True)),
        cast(Iterable[ResourceClaimFacts], claims.values_list("facts", flat=True)),
    )
    devices = tuple(d for d in fleet.devices if as_label(str(d.attributes.get(PRODUCT, ""))) == flavor.product)
    return DeviceInventory(
        fleet=replace(fleet, devices=devices),
        usable=frozenset(node.name for node in nodes if node.ready),
        free_parts=_free_parts(flavor) if any(node.blocked_gpus for node in nodes) else {},
        schema=device_schema.of_devices(devices),
        demands=_demands(flavor),
    )


def excess(flavor: Flavor, counted: Mapping[str, int], slices: Iterable[Slice]) -> str:
    """Return in words what the allocated devices use beyond the units that the lease counts; "" if nothing."""
    inventory = of_flavor(flavor)
    devices = {(device.node, device.name): device for device in inventory.fleet.devices}
    allocated = [
        (devices[each.node, each.device], int(each.consumed.get("shares", 1)))
        for each in slices
        if each.is_charged and (each.node, each.device) in devices
    ]
    amounts = units.excess(counted, allocated, inventory.demands)
    return ", ".join(f"{amount} of {name} where {counted.get(name, 0)} are counted" for name, amount in amounts.items())


def _free_parts(flavor: Flavor) -> dict[str, Fraction]:
    replicas = max(flavor.offerings.values_list("replicas", flat=True), default=1)
    return flavor_devices.of_flavors([flavor])[flavor.pk].free_parts(SliceShape(Kind.CLAIM, replicas=replicas))


def _demands(flavor: Flavor) -> DeviceDemands:
    by_kind = {
        (offering.kind, offering.profile): DeviceDemand(offering.requests, offering.gpu_share, offering.memory_part)
        for offering in Offering.objects.filter(flavor=flavor)
    }
    return DeviceDemands(
        whole=by_kind.get((Kind.WHOLE, "")),
        profiles={profile: demand for (kind, profile), demand in by_kind.items() if kind == Kind.MIG},
        share=by_kind.get((Kind.SHARED, "")),
    )
