"""Reads which pods of tenants use an allocation now."""

from typing import cast

from allocations.domain.objects import is_on_node
from allocations.domain.observed_facts import PodFacts
from allocations.models import Allocation, MirrorObject


def pods_now(row: Allocation) -> int:
    """Return how many pods use what the allocation holds; one query. Holder pods of the portal do not count."""
    pods = MirrorObject.objects.filter(
        cluster=row.project.cluster_id, kind="Pod", namespace=row.project.namespace, allocation=row.name
    )
    found = [cast(PodFacts, facts) for facts in pods.values_list("facts", flat=True)]
    return sum(is_on_node(one) and not one.get("holder") for one in found)
