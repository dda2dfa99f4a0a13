"""The spec of a claim that a person wrote: it was built when it was asked for, and is immutable on the cluster."""

from collections.abc import Mapping
from typing import Any


def requests(spec: Mapping[str, Any]) -> list[str]:
    """Names of its requests, in their order."""
    return [request["name"] for request in spec["devices"]["requests"]]
