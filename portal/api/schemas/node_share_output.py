"""The CPU, memory and pods of the node that come with a slice, in REST answers."""

from typing import Any

from rest_framework import serializers

from quotas.catalog import quantities
from quotas.catalog.node_shares import NodeShare


class NodeShareOut(serializers.Serializer):
    cpu = serializers.CharField(help_text="As Kubernetes writes it: 23, 2875m.")
    memory = serializers.CharField(help_text="As Kubernetes writes it: 250Gi.")
    pods = serializers.IntegerField(help_text="At most, ended ones not counted.")


def node_share(share: NodeShare) -> dict[str, Any] | None:
    """Return the share as an answer; None if no node has reported its capacity."""
    if not share:
        return None
    return {
        "cpu": quantities.cpu_text(share.cpu_millicores),
        "memory": quantities.memory_text(share.memory_mib),
        "pods": share.pods,
    }
