"""Validates a ResourceClaim by a dry run on the API server, which compiles its CEL and checks every limit.

The claim has a name that no object uses. Validation and admission run, and nothing is stored. An invalid claim is
answered with status 422 and causes by field (meta/v1 Status).
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from allocations.cluster.client import connect
from allocations.cluster.errors import ClusterRefused

NAME = "gpu-portal-dry-run"
_FIELD = re.compile(
    r"spec\.devices\.requests\[(\d+)\](?:\.firstAvailable\[(\d+)\])?(?:\.exactly)?(?:\.selectors\[(\d+)\])?"
)


class SpecLocation(NamedTuple):
    """The indices of a request, its alternative and its selector in a claim's spec."""

    request: int
    choice: int
    selector: int | None


def validate_claim(cluster: str, namespace: str, spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the API server's errors for the spec as (field, message); empty if the spec is valid.

    Raises ClusterUnavailable.
    """
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": spec,
    }
    try:
        connect(cluster).apply(manifest, dry_run=True)
    except ClusterRefused as error:
        return [(cause.get("field", ""), cause.get("message", "")) for cause in error.causes] or [("", error.message)]
    return []


def locate(field: str) -> SpecLocation | None:
    """Return the request, alternative and selector that contain a field of the spec; None if no request does."""
    match = _FIELD.match(field)
    if match is None:
        return None
    request, choice, selector = match.groups()
    return SpecLocation(int(request), int(choice or 0), int(selector) if selector is not None else None)
