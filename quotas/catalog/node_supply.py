"""What discovery found of a node that the count of its use depends on, as a document in the catalogue. Pure.

With it a change of use is counted on its own node, without discovering the others again.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from quotas.catalog.node_shares import NodeShare
from quotas.catalog.types import FoundNode


@dataclass(frozen=True)
class NodeSupply:
    """A node's healthy units by pool, what it gives pods, and what goes with a GPU of its flavor.

    ``parts`` says of each pool of the flavor what a unit is of a GPU, by the pool's key.
    """

    units: Mapping[str, int]
    gives: NodeShare
    per_gpu: NodeShare
    parts: Mapping[str, Fraction]


def document(node: FoundNode, per_gpu: NodeShare, parts: Mapping[str, Fraction]) -> dict[str, Any]:
    """Return the supply of a node as JSON."""
    return {
        "units": dict(node.units),
        "gives": asdict(node.gives),
        "per_gpu": asdict(per_gpu),
        "parts": {key: str(part) for key, part in sorted(parts.items())},
    }


def from_document(stored: Mapping[str, Any]) -> NodeSupply:
    """Return the supply of a JSON document."""
    parts = {key: Fraction(part) for key, part in stored["parts"].items()}
    return NodeSupply(stored["units"], NodeShare(**stored["gives"]), NodeShare(**stored["per_gpu"]), parts)
