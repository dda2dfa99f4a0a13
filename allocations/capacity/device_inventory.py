"""The devices of a flavor that claims choose from, as mirrored, in four queries.

Three more look up the CPU and memory that go with some of the devices, where other pods use that share.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from allocations.capacity import flavor_devices
from allocations.capacity.devices import SliceShape
from allocations.claims import device_schema, published, units
from allocations.claims.device_schema import DeviceSchema
from allocations.claims.fit import Fleet
from allocations.claims.model import PRODUCT
from allocations.claims.units import DeviceDemand, DeviceDemands
from allocations.domain.objects import Slice
from allocations.models import MirrorObject
from quotas.catalog.dra import as_label
from quotas.catalog.models import Flavor, Kind, Node, Offering


@dataclass(frozen=True)
class DeviceInventory:
    """``fleet`` is on all nodes of the flavor; ``usable`` are the nodes that take pods now.

    ``free_parts`` says how much of its GPUs a node can give with their share of CPU and memory, for nodes that have too
    little for all of them.
    """

    fleet: Fleet
    usable: frozenset[str]
    free_parts: Mapping[str, Fraction]
    schema: DeviceSchema
    demands: DeviceDemands

    def now(self, part: Fraction) -> Fleet:
        """The devices on nodes that take pods, with the share that goes with so much of their cards."""
        usable = {node for node in self.usable if part <= self.free_parts.get(node, part)}
        return replace(self.fleet, devices=tuple(d for d in self.fleet.devices if d.node in usable))


def of_flavor(flavor: Flavor) -> DeviceInventory:
    """Return what the flavor's nodes publish, what claims have of it, and what each kind of device takes of
    its pools.
    """
    nodes = list(Node.objects.filter(flavor=flavor, present=True))
    there = MirrorObject.objects.filter(cluster=flavor.cluster_id)
    slices = there.filter(kind="ResourceSlice", facts__node__in=[node.name for node in nodes]).order_by("name")
    claims = there.filter(kind="ResourceClaim").exclude(facts__devices=[])
    found = published.fleet(slices.values_list("facts", flat=True), claims.values_list("facts", flat=True))
    own = tuple(d for d in found.devices if as_label(str(d.attributes.get(PRODUCT, ""))) == flavor.product)
    return DeviceInventory(
        fleet=replace(found, devices=own),
        usable=frozenset(node.name for node in nodes if node.ready),
        free_parts=_free_parts(flavor) if any(node.blocked_gpus for node in nodes) else {},
        schema=device_schema.of_devices(own),
        demands=_demands(flavor),
    )


def excess(flavor: Flavor, counted: Mapping[str, int], given: Iterable[Slice]) -> str:
    """Return a sentence about what the allocated devices take beyond what the lease counts; "" if nothing."""
    inventory = of_flavor(flavor)
    published = {(device.node, device.name): device for device in inventory.fleet.devices}
    known = [
        (published[one.node, one.device], int(one.consumed.get("shares", 1)))
        for one in given
        if one.is_charged and (one.node, one.device) in published
    ]
    more = units.excess(counted, known, inventory.demands)
    return ", ".join(f"{amount} of {name} where {counted.get(name, 0)} are counted" for name, amount in more.items())


def _free_parts(flavor: Flavor) -> dict[str, Fraction]:
    replicas = max(flavor.offerings.values_list("replicas", flat=True), default=1)
    return flavor_devices.of_flavors([flavor])[flavor.pk].free_parts(SliceShape(Kind.CLAIM, replicas=replicas))


def _demands(flavor: Flavor) -> DeviceDemands:
    by_kind = {
        (offering.kind, offering.profile): DeviceDemand(offering.requests, offering.gpu_share, offering.card_part)
        for offering in Offering.objects.filter(flavor=flavor)
    }
    return DeviceDemands(
        whole=by_kind.get((Kind.WHOLE, "")),
        profiles={profile: demand for (kind, profile), demand in by_kind.items() if kind == Kind.MIG},
        share=by_kind.get((Kind.SHARED, "")),
    )
