"""The API server's own opinion of a claim, without making it: it compiles CEL and checks every limit.

Its answer is 422 with causes by field (meta/v1 Status). The claim is created under a name that nobody has, as a dry
run: validation and admission run, nothing is stored.
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
    request: int
    choice: int
    selector: int | None


def validate_claim(cluster: str, namespace: str, spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the API server has against the spec, as (its field, its words); empty when it would take it.

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
    """Request, alternative and selector that a field of the spec is in."""
    match = _FIELD.match(field)
    if match is None:
        return None
    request, choice, selector = match.groups()
    return SpecLocation(int(request), int(choice or 0), int(selector) if selector is not None else None)
