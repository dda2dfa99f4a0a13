"""Writes to the catalogue what is used of nodes, between two discoveries."""

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from math import ceil
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Least

from quotas.catalog.models import Node, PoolUse
from quotas.catalog.storable import MAX_NUMBER
from quotas.catalog.types import NodeUsage

FIELDS = ("foreign", "blocked_units", "blocked_gpus", "problem")
NOTHING = NodeUsage()
MAX_BLOCKED = Decimal("999999.999")


def columns(usage: NodeUsage, found_problem: str) -> dict[str, Any]:
    """Return a node's FIELDS, given the problem that discovery found."""
    return {
        "foreign": dict(usage.foreign),
        "blocked_units": dict(usage.blocked_units),
        "blocked_gpus": min(Decimal(ceil(usage.blocked * 1000)).scaleb(-3), MAX_BLOCKED),
        "problem": "; ".join(filter(None, (found_problem, usage.problem))),
    }


def record(cluster: str, usages: Mapping[Node, NodeUsage]) -> None:
    """Write the use of these nodes where it differs, and add the difference to the use of their pools.

    The caller keeps others from writing the use of the cluster (``sync.sync`` and this). No query if nothing differs,
    else one for the nodes and one for each pool that differs.
    """
    changed, foreign, blocked = list[Node](), Counter[str](), Counter[str]()
    for node, usage in usages.items():
        values = columns(usage, node.found_problem)
        if all(getattr(node, name) == value for name, value in values.items()):
            continue
        for difference, name in ((foreign, "foreign"), (blocked, "blocked_units")):
            difference.update(values[name])
            difference.subtract(getattr(node, name))
        for name, value in values.items():
            setattr(node, name, value)
        changed.append(node)
    if not changed:
        return
    with transaction.atomic():
        Node.objects.bulk_update(changed, FIELDS)
        for key in sorted(key for key in foreign.keys() | blocked.keys() if foreign[key] or blocked[key]):
            uses = PoolUse.objects.filter(pool__key=key, pool__flavor__cluster=cluster)
            uses.update(
                foreign=Least(F("foreign") + foreign[key], MAX_NUMBER),
                blocked=Least(F("blocked") + blocked[key], MAX_NUMBER),
            )
