"""What a custom claim requests, in words."""

from collections.abc import Mapping
from typing import Any

from allocations.domain.custom_claim import CustomClaim
from frontend.claim_form import DEVICES
from frontend.presenters import offerings
from quotas.catalog.models import Offering


def slices(offering: Offering, count: int, claim: CustomClaim | None) -> str:
    """Return ``2 × NVIDIA L40S``; of a custom claim what it requests, since its count is always one."""
    if claim is None:
        return f"{count} × {offerings.name(offering)}"
    return f"{offerings.product(offering)}, custom claim: {requested(claim.document)}"


def matches(devices: int) -> str:
    """Return ``Matches 12 devices.`` for one request of a claim."""
    return "Matches no device." if not devices else f"Matches {devices} device{'' if devices == 1 else 's'}."


def requested(document: Mapping[str, Any]) -> str:
    """Return ``2 × whole GPU, 1 × MIG slice 3g.40gb or 1 × whole GPU`` for a claim's document."""
    return ", ".join(
        " or ".join(map(_choice, request.get("alternatives") or [request])) for request in document["requests"]
    )


def _choice(choice: Mapping[str, Any]) -> str:
    count, device = choice.get("count", 1), DEVICES[choice.get("device", "gpu")]
    words = f"{device} {choice['profile']}" if choice.get("profile") else device
    return f"{count} × {words}" if count != "all" else f"all {words}s of a node"
