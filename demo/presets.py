"""Presets of the demo."""

from decimal import Decimal
from typing import Any

from portal.tenants.actors import SYSTEM
from quotas.catalog import selectors, services
from quotas.catalog.models import Kind, Offering, Preset

NODE_GPUS = 8


def seed_presets() -> int:
    """Create the presets Notebook (the smallest MIG slice) and 8-GPU node, if there are none; return how many."""
    if Preset.objects.exists():
        return 0
    offered = sorted(selectors.offerings(), key=lambda one: (one.gpu_share, one.flavor.path != "dra", one.key))
    slices = [one for one in offered if one.kind == Kind.MIG]
    nodes = [one for one in offered if one.kind == Kind.WHOLE and one.per_node >= NODE_GPUS]
    found = [_preset("Notebook", slices, 1, 8, 1), _preset(f"{NODE_GPUS}-GPU node", nodes, NODE_GPUS, 24, 2)]
    presets = [one for one in found if one]
    for preset in presets:
        services.save_preset(SYSTEM, Preset(), preset)
    return len(presets)


def _preset(name: str, offerings: list[Offering], count: int, hours: int, position: int) -> dict[str, Any]:
    """Return the values of a preset; none without an offering."""
    if not offerings:
        return {}
    return {"name": name, "offering": offerings[0], "count": count, "hours": Decimal(hours), "position": position}
