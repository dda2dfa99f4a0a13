"""The CPU, memory and pods of the node that come with a slice, in REST answers."""

from dataclasses import dataclass
from typing import Annotated

from quotas.catalog import quantities
from quotas.catalog.node_shares import NodeShare


@dataclass(frozen=True)
class NodeShareOut:
    cpu: Annotated[str, "As Kubernetes writes it: 23, 2875m."]
    memory: Annotated[str, "As Kubernetes writes it: 250Gi."]
    pods: Annotated[int, "At most, ended ones not counted."]


def node_share(share: NodeShare) -> NodeShareOut | None:
    """Return the share as an answer; None if no node has reported its capacity."""
    if not share:
        return None
    return NodeShareOut(
        cpu=quantities.cpu_text(share.cpu_millicores),
        memory=quantities.memory_text(share.memory_mib),
        pods=share.pods,
    )
