"""Kueue's Cohorts and ClusterQueues as last observed, compared with the desired ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from allocations.models import MirrorObject
from portal.tenants import access
from portal.tenants.models import User
from quotas.catalog.models import Cluster
from quotas.limits import differences, selectors
from quotas.limits.differences import Difference

KINDS = ("Cohort", "ClusterQueue")


@dataclass(frozen=True)
class KueueObject:
    """``problem`` is empty while the object takes part. The counts are of workloads; None for a Cohort, which has none.
    ``differences`` are fields that we set and that are otherwise there (before), or not."""

    kind: str
    name: str
    problem: str
    pending: int | None
    reserving: int | None
    admitted: int | None
    differences: tuple[Difference, ...]


def objects(user: User) -> list[KueueObject]:
    """All that should be there, in the order in which it is applied. A fixed number of queries. For operators and
    auditors."""
    cluster = access.for_platform(user, Cluster.objects.all()).filter(slug=settings.CLUSTER_NAME).first()
    return list(_compared(cluster)) if cluster else []


def _compared(cluster: Cluster) -> Iterator[KueueObject]:
    rows = {(row.kind, row.name): row.facts for row in MirrorObject.objects.filter(kind__in=KINDS)}
    for wanted in selectors.manifests(cluster):
        kind, name = wanted["kind"], wanted["metadata"]["name"]
        if kind not in KINDS:
            continue
        facts: dict[str, Any] | None = rows.get((kind, name))
        if facts is None:
            yield KueueObject(kind, name, "It is not there; the portal makes it.", None, None, None, ())
            continue
        there = {**wanted, "spec": facts.get("spec", {})}
        # What Kueue adds by itself, such as its defaults, is its own.
        found = tuple(d for d in differences.between([there], [wanted]) if d.after is not None)
        yield KueueObject(
            kind,
            name,
            f"Kueue admits nothing: {facts['inactive']}" if facts.get("inactive") else "",
            facts.get("pending"),
            facts.get("reserving"),
            facts.get("admitted"),
            found,
        )
