"""The devices of a flavor that claims choose from, as mirrored, in three queries."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

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
    """``fleet`` is on all nodes of the flavor; ``usable`` are the nodes that take pods now."""

    fleet: Fleet
    usable: frozenset[str]
    schema: DeviceSchema
    demands: DeviceDemands

    @property
    def now(self) -> Fleet:
        return replace(self.fleet, devices=tuple(d for d in self.fleet.devices if d.node in self.usable))


def of_flavor(flavor: Flavor) -> DeviceInventory:
    """Return what the flavor's nodes publish, what claims have of it, and what each kind of device takes of
    its pools.
    """
    nodes = dict(Node.objects.filter(flavor=flavor, present=True).values_list("name", "ready"))
    there = MirrorObject.objects.filter(cluster=flavor.cluster_id)
    slices = there.filter(kind="ResourceSlice", facts__node__in=list(nodes)).order_by("name")
    claims = there.filter(kind="ResourceClaim").exclude(facts__devices=[])
    found = published.fleet(slices.values_list("facts", flat=True), claims.values_list("facts", flat=True))
    own = tuple(d for d in found.devices if as_label(str(d.attributes.get(PRODUCT, ""))) == flavor.product)
    usable = frozenset(name for name, is_ready in nodes.items() if is_ready)
    return DeviceInventory(replace(found, devices=own), usable, device_schema.of_devices(own), _demands(flavor))


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
