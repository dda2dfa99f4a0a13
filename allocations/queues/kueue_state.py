"""Compares Kueue's Cohorts and ClusterQueues as last observed with the desired ones."""

from collections.abc import Iterator
from dataclasses import dataclass

from allocations.domain.observed_facts import ClusterQueueFacts, cluster_queue_facts
from allocations.models import MirrorObject
from portal.clusters.models import Cluster
from portal.core.reading import Batch, Rows
from portal.tenants import access
from portal.tenants.models import User
from quotas.limits import differences, selectors
from quotas.limits.differences import Difference

KINDS = ("Cohort", "ClusterQueue")


@dataclass(frozen=True)
class KueueObject:
    """A Cohort or ClusterQueue, with what is wrong with it.

    ``problem`` is "" while the object is active. The numbers are of workloads, None for a Cohort. ``differences`` are
    the fields that the portal sets and whose observed value (before) is another one or missing.
    """

    cluster: str
    kind: str
    name: str
    problem: str
    pending: int | None
    reserving: int | None
    admitted: int | None
    differences: tuple[Difference, ...]


def objects(user: User) -> list[KueueObject]:
    """Return all Kueue objects that should exist, by cluster, in the order in which they are applied.

    For operators and auditors. A fixed number of queries for each cluster.
    """
    clusters = access.for_platform(user, Cluster.objects.all())
    return [found for slug in clusters.values_list("slug", flat=True) for found in _compared(slug)]


def _compared(cluster: str) -> Iterator[KueueObject]:
    batch = Batch()
    mirrored = batch.add(Rows(MirrorObject.objects.filter(cluster=cluster, kind__in=KINDS)))
    wanted = selectors.manifests(cluster, batch=batch)
    rows: dict[tuple[str, str], MirrorObject] = {(row.kind, row.name): row for row in mirrored()}
    for desired in wanted:
        kind, name = desired["kind"], desired["metadata"]["name"]
        if kind not in KINDS:
            continue
        row = rows.get((kind, name))
        if row is None:
            yield KueueObject(cluster, kind, name, "It is missing. The portal creates it.", None, None, None, ())
            continue
        facts = cluster_queue_facts(row)  # a Cohort has only a spec
        observed = {**desired, "spec": facts.get("spec", {})}
        # Fields that only Kueue sets, such as its defaults, are no difference.
        found = tuple(d for d in differences.between([observed], [desired]) if d.after is not None)
        yield KueueObject(
            cluster,
            kind,
            name,
            _problem(facts),
            facts.get("pending"),
            facts.get("reserving"),
            facts.get("admitted"),
            found,
        )


def _problem(facts: ClusterQueueFacts) -> str:
    if inactive := facts.get("inactive"):
        return f"Kueue admits nothing: {inactive}"
    if facts.get("overridden"):
        return (
            "Kueue counts status.effectiveQuota instead of the quota that is set here. Turn Dynamic Quota "
            "Orchestration off for it, or limits, previews and forecasts are wrong."
        )
    return ""
