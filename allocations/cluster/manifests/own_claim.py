"""The spec of a claim that a person wrote: it was built when it was asked for, and is immutable on the cluster."""

from collections.abc import Mapping
from typing import Any

from allocations.domain.objects import Manifest


def spec(stored: Mapping[str, Any]) -> Manifest:
    """``stored`` as ``allocations.requests.custom_claims`` keeps it."""
    return dict(stored["built"]["spec"])


def requests(stored: Mapping[str, Any]) -> list[str]:
    """Names of its requests, in their order."""
    return [request["name"] for request in spec(stored)["devices"]["requests"]]
