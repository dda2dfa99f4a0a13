"""Units of capacity as plain types: a physical GPU that DRA names, or a resource of a node. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

GPU, RESOURCE = "gpu", "resource"
"""The kinds of a unit."""


class Unit(NamedTuple):
    """Identifies a GPU, or a resource of a node, in a cluster."""

    node: str
    kind: str
    name: str


@dataclass(frozen=True)
class FoundUnit:
    """What a node has of a unit; the fields are those of CapacityInterval."""

    count: int
    available: int
    state: str = ""
    uuid: str = ""
    labels: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Value:
    """What the catalogue knows of a unit: its flavor ("" if it has none), the GPUs that it is, and whether the flavor
    is offered.
    """

    flavor: str
    gpus: Fraction
    offered: bool
