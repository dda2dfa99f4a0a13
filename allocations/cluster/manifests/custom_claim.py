"""Reads the spec of a custom claim, which was built when it was requested and is immutable. Pure."""

from collections.abc import Mapping
from typing import Any


def requests(spec: Mapping[str, Any]) -> list[str]:
    """Return the names of the claim's requests, in order."""
    return [request["name"] for request in spec["devices"]["requests"]]
