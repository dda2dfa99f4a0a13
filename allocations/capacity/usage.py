"""The slices and units that allocations and tenants' own Jobs hold and have reserved now."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import NamedTuple

from django.db.models import Sum

from allocations.capacity.offering_index import Amounts, OfferingIndex, ReservedClaim
from allocations.domain.custom_claim import UNITS_PATH
from allocations.domain.phases import RESERVING
from allocations.models import Allocation, MirrorObject
from portal.core.reading import Batch, Columns, Compiled, compiled
from quotas.limits import names as queue_names
from quotas.metering.models import UsageInterval


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
        return self._reserved.get((team, offering), 0) + jobs

    @cached_property
    def by_queue(self) -> Mapping[str, Mapping[tuple[str, str], int]]:
        """Amounts reserved in each ClusterQueue, by flavor and resource.

        They include the leases of allocations in phases that reserve, and tenants' own Jobs.
        """
        used: dict[str, dict[tuple[str, str], int]] = defaultdict(lambda: defaultdict(int))
        for team in {team for team, _ in self._reserved} | {claim.team for claim in self._claims}:
            of_queue = used[queue_names.cluster_queue(team)]
            for pool, amounts in self._reserved_amounts(team).items():
                for resource, amount in amounts.items():
                    of_queue[pool.partition("/")[0], resource] += amount
        for (queue, flavor, resource), amount in self._jobs.items():
            used[queue][flavor, resource] += amount
        return used

    def _reserved_amounts(self, team: str) -> Amounts:
        slices = {key: n for (t, key), n in self._reserved.items() if t == team}
        return self.index.amounts(slices, [claim for claim in self._claims if claim.team == team])

    @cached_property
    def _reserved(self) -> dict[tuple[str, str], int]:
        return {(team, offering): n for team, offering, n in self._read.reserved}

    @cached_property
    def _claims(self) -> list[ReservedClaim]:
        return [ReservedClaim(team, offering, units or {}) for team, offering, units in self._read.claims]

    @cached_property
    def _jobs(self) -> Counter[tuple[str, str, str]]:
        """Amounts reserved by workloads other than leases, by ClusterQueue, flavor and resource.

        Only flavors with offerings count, each in its own cluster: another cluster may have flavors of the same name
        that the portal does not offer.
        """
        flavors = {(flavor.cluster_id, flavor.name) for flavor in self.index.flavors()}
        reserved: Counter[tuple[str, str, str]] = Counter()
        for cluster, queue, usage in self._read.jobs:
            for flavor, amounts in (usage or {}).items() if queue else ():
                if (cluster, flavor) in flavors:
                    reserved.update({(queue, flavor, resource): amount for resource, amount in amounts.items()})
        return reserved

    @cached_property
    def _read(self) -> "_Rows":
        return _Rows(*(rows() for rows in self._parts))


@cache
def _compiled_parts() -> tuple[Compiled, ...]:
    return tuple(map(compiled, _parts()))


def _parts() -> Iterator[Columns]:
    """Yield what to read of each field of ``_Rows``."""
    held = UsageInterval.objects.filter(end=None).order_by().values("offering").annotate(n=Sum("count"))
    reserving = Allocation.objects.filter(ended_at=None, phase__in=RESERVING).order_by()
    offerings = ("project__team__slug", "offering__key")
    jobs = MirrorObject.objects.filter(kind="Workload", allocation="").exclude(facts__cluster_queue="")
    yield Columns(held, ("offering", "n"))
    yield Columns(reserving.values(*offerings).annotate(n=Sum("count")), (*offerings, "n"))
    yield Columns(reserving.filter(claim__isnull=False), (*offerings, f"claim__{UNITS_PATH}"))
    yield Columns(jobs, ("cluster", "facts__cluster_queue", "facts__usage"))


class _Rows(NamedTuple):
    """What was read: slices held by offering; slices reserved by team and offering; the units of claims by the same;
    cluster, queue and usage of other workloads.
    """

    held: list[tuple[str, int]]
    reserved: list[tuple[str, str, int]]
    claims: list[tuple[str, str, Mapping[str, int] | None]]
    jobs: list[tuple[str, str, Mapping[str, Mapping[str, int]] | None]]
