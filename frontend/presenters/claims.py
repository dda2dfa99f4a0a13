"""What a custom claim requests, in words."""

from collections.abc import Mapping
from typing import Any

from frontend.claim_form import DEVICES


def requested(document: Mapping[str, Any]) -> str:
    """Return ``2 × whole GPU, 1 × MIG slice 3g.40gb or 1 × whole GPU`` for a claim's document."""
    return ", ".join(
        " or ".join(map(_choice, request.get("alternatives") or [request])) for request in document["requests"]
    )


def _choice(choice: Mapping[str, Any]) -> str:
    count, device = choice.get("count", 1), DEVICES[choice.get("device", "gpu")]
    words = f"{device} {choice['profile']}" if choice.get("profile") else device
    return f"{count} × {words}" if count != "all" else f"all {words}s of a node"
