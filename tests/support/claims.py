"""Published devices of the simulated fleet, for tests of claims."""

import functools
from typing import Any

from allocations.claims import device_schema, published
from allocations.claims.device_index import DeviceIndex
from allocations.claims.fit import Fleet
from allocations.claims.model import Claim
from allocations.claims.parse import parse
from allocations.claims.units import DeviceDemand, DeviceDemands
from allocations.cluster import kinds
from allocations.domain.observed_facts import AllocatedDevice
from deploy.local.fleet import slices, spec
from portal.core.errors import Invalid
from quotas.catalog.geometry import Slices, gpu_share, memory_part
from quotas.catalog.mig_tables import TABLES


@functools.cache
def facts(kind: str, nodes: int = 2) -> tuple[Any, ...]:
    """Return the mirrored ResourceSlices of this many nodes of a kind in deploy/local/fleet.yaml."""
    fleet = spec.load(spec.FLEET_FILE)
    (node_kind,) = [each for each in fleet.kinds if each.name == kind]
    pools = [slices.pool(fleet, node_kind, f"{kind}-{index}", {}) for index in range(nodes)]
    specs = [one | {"pool": one["pool"] | {"generation": 1}} for pool in pools for one in pool.values()]
    return tuple(kinds.KINDS["ResourceSlice"].projector({"spec": one}) for one in specs)


@functools.cache
def fleet(kind: str = "h100", *held: str) -> Fleet:
    """Return the published devices; those in ``taken`` (node/device) are held by claims."""
    names = (name.split("/") for name in held)
    devices = [AllocatedDevice(request="", driver="gpu.nvidia.com", pool=pool, device=device) for pool, device in names]
    return published.fleet(facts(kind), [{"devices": devices, "allocated_at": "", "cards": []}])


@functools.cache
def schema(kind: str = "h100") -> device_schema.DeviceSchema:
    return device_schema.of_devices(fleet(kind).devices)


def index(kind: str = "h100") -> DeviceIndex:
    return DeviceIndex(fleet(kind).devices)


def claim(*requests: dict[str, Any], kind: str = "h100", **parts: Any) -> Claim:
    return parse({"requests": list(requests), **parts}, schema(kind))


def wrong(document: Any, kind: str = "h100") -> dict[str, list[str]]:
    """Return the errors of a document, by field; empty for a valid one."""
    try:
        parse(document, schema(kind))
    except Invalid as error:
        return error.errors
    return {}


def demands() -> DeviceDemands:
    """Return what an H100 with dynamic MIG takes of its pool, as the catalog has it."""
    geometry = TABLES["H100-80GB"]
    whole = Slices(geometry.compute, geometry.memory)
    return DeviceDemands(
        whole=_demand(whole, whole),
        profiles={p.name: _demand(Slices(p.compute, p.size), whole) for p in geometry.profiles},
    )


def _demand(slices_: Slices, whole: Slices) -> DeviceDemand:
    amounts = {"gpu-portal.io/compute-slices": slices_.compute, "gpu-portal.io/memory-slices": slices_.memory}
    return DeviceDemand(amounts, gpu_share(slices_, whole), memory_part(slices_, whole))
