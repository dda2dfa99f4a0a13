"""The slices and units that allocations and tenants' own Jobs hold and have reserved now."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import Any, NamedTuple

from django.db.models import Sum

from allocations.capacity.offering_index import Amounts, OfferingIndex, ReservedClaim
from allocations.domain.custom_claim import UNITS_PATH
from allocations.domain.phases import RESERVING
from allocations.models import MirrorObject
from portal.core.query_templates import without_parameters
from portal.core.reading import Batch, Columns, Compiled, Statement
from quotas.limits import names as queue_names
from quotas.metering.models import UsageInterval

RESERVED = f"""
    SELECT team.slug, offering.key, used.slices, used.claims
    FROM (
        SELECT project_id, offering_id, sum(count) AS slices,
            json_agg(claim #> '{{{UNITS_PATH.replace("__", ",")}}}') FILTER (WHERE claim IS NOT NULL) AS claims
        FROM allocations_allocation WHERE ended_at IS NULL AND phase = ANY(%s) GROUP BY project_id, offering_id
    ) AS used
    JOIN tenants_project AS project ON project.id = used.project_id
    JOIN tenants_team AS team ON team.id = project.team_id
    JOIN catalog_offering AS offering ON offering.id = used.offering_id
"""  # noqa: S608 (built from a constant)
"""Sums before it joins: there are many allocations of a project."""


class CurrentUsage:
    """Current use, read with the rest of the ``batch`` when it is first needed."""

    def __init__(self, index: OfferingIndex | None = None, batch: Batch | None = None) -> None:
        batch = batch or Batch()
        self.index = index or OfferingIndex(batch)
        self._parts = [batch.add(part) for part in _compiled_parts()]

    @cached_property
    def held(self) -> Mapping[str, int]:
        """Slices held by offering, as metered."""
        return dict(self._read.held)

    @cached_property
    def held_amounts(self) -> Amounts:
        """Amounts held of each pool."""
        return self.index.amounts(self.held, self._claims)

    def reserved_slices(self, team: str, offering: str, flavor: str, resource: str) -> int:
        """Return the slices of the offering that the team has reserved.

        Tenants' own Jobs are found by the offering's ``flavor`` and ``resource`` in Kueue.
        """
        jobs = self._jobs[queue_names.cluster_queue(team), flavor, resource]
        return self._reserved.get(team, Counter())[offering] + jobs

    @cached_property
    def by_queue(self) -> Mapping[str, Mapping[tuple[str, str], int]]:
        """Amounts reserved in each ClusterQueue, by flavor and resource.

        They include the leases of allocations in phases that reserve, and tenants' own Jobs.
        """
        used: dict[str, dict[tuple[str, str], int]] = defaultdict(lambda: defaultdict(int))
        claims: dict[str, list[ReservedClaim]] = defaultdict(list)
        for claim in self._claims:
            claims[claim.team].append(claim)
        for team, slices in self._reserved.items():
            of_queue = used[queue_names.cluster_queue(team)]
            for pool, amounts in self.index.amounts(slices, claims[team]).items():
                for resource, amount in amounts.items():
                    of_queue[pool.partition("/")[0], resource] += amount
        for (queue, flavor, resource), amount in self._jobs.items():
            used[queue][flavor, resource] += amount
        return used

    @cached_property
    def _reserved(self) -> dict[str, Counter[str]]:
        """Slices by team and offering; custom claims count too."""
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for row in self._read.reserved:
            found[row.team][row.offering] += row.slices
        return found

    @cached_property
    def _claims(self) -> list[ReservedClaim]:
        return [
            ReservedClaim(row.team, row.offering, units or {})
            for row in self._read.reserved
            for units in row.claims or ()
        ]

    @cached_property
    def _jobs(self) -> Counter[tuple[str, str, str]]:
        """Amounts reserved by workloads other than leases, by ClusterQueue, flavor and resource.

        Only flavors with offerings count, each in its own cluster: another cluster may have flavors of the same name
        that the portal does not offer.
        """
        flavors = {(flavor.cluster_id, flavor.name) for flavor in self.index.flavors()}
        reserved: Counter[tuple[str, str, str]] = Counter()
        for row in self._read.jobs:
            queue = row.facts__cluster_queue
            for flavor, amounts in (row.facts__usage or {}).items() if queue else ():
                if (row.cluster, flavor) in flavors:
                    reserved.update({(queue, flavor, resource): amount for resource, amount in amounts.items()})
        return reserved

    @cached_property
    def _read(self) -> "_Rows":
        return _Rows(*(rows() for rows in self._parts))


@cache
def _compiled_parts() -> tuple[Compiled, ...]:
    return tuple(map(without_parameters, _parts()))


def _parts() -> Iterator[Columns | Statement]:
    """Yield what to read of each field of ``_Rows``."""
    held = UsageInterval.objects.filter(end=None).order_by().values("offering").annotate(n=Sum("count"))
    jobs = MirrorObject.objects.filter(kind="Workload", allocation="").exclude(facts__cluster_queue="")
    yield Columns(held, ("offering", "n"))
    yield Statement(RESERVED, ([phase.value for phase in RESERVING],), ("team", "offering", "slices", "claims"))
    yield Columns(jobs, ("cluster", "facts__cluster_queue", "facts__usage"))


class _Rows(NamedTuple):
    """What was read: slices held by offering; slices reserved by team and offering, of several projects, with the units
    of each custom claim among them; cluster, queue and usage of other workloads.
    """

    held: list[Any]
    reserved: list[Any]
    jobs: list[Any]
