"""Resources by which devices of the DRA driver are counted, and the pools they belong to. Pure.

Devices that are allocated as they are count as the extended resource of their DeviceClass, by which Jobs request them,
else as a resource of the portal's own, which no Job can request.
"""

import re
from collections.abc import Iterable, Mapping

from quotas.catalog.nvidia import WHOLE_GPU_CLASS
from quotas.catalog.types import ClassFact

GPU_SHARES = "gpu-portal.io/gpu-shares"
VENDOR, OWN = "nvidia.com/", "gpu-portal.io/"
_PROFILE = re.compile(r"""\bprofile["'\])]*\s*==\s*["']([^"']+)["']""")


def extended_resources(classes: Iterable[ClassFact]) -> dict[str, str]:
    """Return the resources by which pods get devices without a claim: {MIG profile, or "" for whole GPUs:
    resource}.
    """
    found: dict[str, str] = {}
    for one in classes:
        if one.name == WHOLE_GPU_CLASS and one.extended_resource.startswith(VENDOR):
            found[""] = one.extended_resource
        for selector in one.selectors:
            for profile in _PROFILE.findall(selector):
                if one.extended_resource == VENDOR + pool_of(profile):
                    found[profile] = one.extended_resource
    return found


def pool_of(profile: str) -> str:
    """Return the pool's key after the flavor, for devices of a profile ("" for whole GPUs)."""
    return "mig-" + profile.replace("+", ".") if profile else "gpu"


def resource_of(profile: str, extended: Mapping[str, str]) -> str:
    """Return the resource of devices of a profile: that of their DeviceClass, else one of the portal's own."""
    return extended.get(profile) or OWN + (pool_of(profile) if profile else "gpus")
