"""Capacity, holds and foreign use in the ledger, as the watcher records them."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any
from uuid import uuid4

from quotas.catalog import versions
from quotas.catalog.models import Flavor, Offering
from quotas.metering import capacity, foreign
from quotas.metering import services as metering
from quotas.metering.foreign import Start, Use
from quotas.metering.models import UsageInterval
from quotas.metering.units import GPU, RESOURCE, FoundUnit, Unit, Value
from tests.support.clusters import LOCAL
from tests.support.quotas import attribution, hour

SEEN = {"kind": "test"}
ONE = Fraction(1)
RESOURCES = {Unit(f"l40s-{n}", RESOURCE, "nvidia.com/gpu"): FoundUnit(4, 4) for n in range(2)}
GPUS = {Unit("h100-0", GPU, f"gpu-{n}"): FoundUnit(1, 1) for n in range(2)}
H100 = {"offering": "h100/whole", "flavor": "h100", "node": "h100-0"}


def record(
    units: Mapping[Unit, FoundUnit], at: float, *, flavor: str = "", gpus: Fraction = ONE, offered: bool = True
) -> None:
    """Record units of a flavor, by default of the one that their node is named after."""
    capacity.record(LOCAL, {unit.node: SEEN for unit in units}, lambda before: {**before, **units}, hour(at))
    values = {unit: Value(flavor or unit.node.rpartition("-")[0], gpus, offered) for unit in units}
    capacity.add_values(LOCAL, capacity.open_units(LOCAL), values)


def hold_gpu(name: str, start: float, end: float | None, **values: Any) -> UsageInterval:
    key, slot = uuid4(), f"{LOCAL}/h100-0/{name}"
    row = metering.open_interval(key, uuid4(), slot, hour(start), attribution(**H100 | values), 1, SEEN)
    if end is not None:
        metering.close_interval(key, hour(end), SEEN)
    return row


def hold_pod(node: str, start: float, end: float | None, **values: Any) -> UsageInterval:
    """Record what a pod of a Job holds of the device plugin's l40s: its node is known, and no GPU."""
    key, slot = uuid4(), f"{LOCAL}/pod:{uuid4()}/nvidia.com/gpu"
    held = attribution(**{"node": node, "member": ""} | values)
    row = metering.open_interval(key, uuid4(), slot, hour(start), held, 1, SEEN)
    if end is not None:
        metering.close_interval(key, hour(end), SEEN)
    return row


def use_gpu_without_allocation(name: str, start: float, end: float) -> None:
    slot, uid = f"{LOCAL}/h100-0/{name}", str(uuid4())
    use = Use(slot, "h100-0", GPU, name, 1, "ResourceClaim", "trainer", uid, "elsewhere")
    foreign.begin(LOCAL, [Start(use, hour(start), 1, estimated=False)])
    foreign.end(LOCAL, uid, [slot], hour(end), 2, estimated=False)


def offer(profile: str, part: Fraction) -> None:
    """Offer a MIG profile of the h100, as it always was."""
    whole = Offering.objects.get(key="h100/whole")
    Offering.objects.create(
        key=f"h100/mig-{profile}",
        flavor=whole.flavor,
        pool=whole.pool,
        kind="mig",
        profile=profile,
        isolation="hardware",
        requests={},
        gpu_share_numerator=part.numerator,
        gpu_share_denominator=part.denominator,
    )
    always(whole.flavor)


def always(flavor: Flavor) -> None:
    """Have the flavor as it is now since its beginning."""
    flavor.versions.all().delete()
    versions.record([flavor])
