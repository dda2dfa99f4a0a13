"""Alternative requests that would be accepted, the most similar first."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from allocations.capacity.headroom import Availability
from allocations.capacity.snapshot import CapacitySnapshot
from allocations.domain.admission import AdmissionInput, AllocationLimit
from allocations.domain.backend_capabilities import CAPABILITIES
from allocations.requests import rules
from portal.core import money
from portal.tenants.models import Project
from quotas.catalog.models import Isolation, Offering

MAX_ALTERNATIVES = 5
AS_GOOD: Mapping[str, frozenset[str]] = {
    Isolation.FULL: frozenset({Isolation.FULL, Isolation.HARDWARE}),
    Isolation.HARDWARE: frozenset({Isolation.FULL, Isolation.HARDWARE}),
    Isolation.NONE: frozenset(Isolation.values),
}
"""What may stand in for a slice: nothing that is shared for one that is not."""


@dataclass(frozen=True)
class Alternative:
    """Another request that no rule refuses. ``hours`` and ``price`` are exact; None is without a price, or at once."""

    offering: str
    count: int
    hours: Fraction
    fits: str
    price: Fraction | None
    starts_at: datetime | None = None

    def document(self) -> dict[str, Any]:
        """As the REST contract has it: amounts as decimal strings."""
        return {
            "offering": self.offering,
            "count": self.count,
            "hours": money.text(self.hours, money.HOURS_PLACES),
            "starts_at": self.starts_at,
            "price": None if self.price is None else money.text(self.price),
            "fits": self.fits,
        }


@dataclass(frozen=True)
class AlternativesQuery:
    """The request that alternatives are searched for."""

    project: Project
    offering: Offering
    count: int
    hours: Fraction
    allocation_limits: tuple[AllocationLimit, ...]
    spread: bool
    constraints: tuple[str, ...]


def ranked(
    availability: Availability,
    query: AlternativesQuery,
    among: Iterable[Offering],
    prices: Mapping[str, Fraction],
    *,
    at_once: bool = False,
) -> list[Alternative]:
    """Fewer of the same first; then what fits now, of the same flavor, of a like size, most of it. ``at_once`` keeps
    what fits now."""
    found: list[tuple[tuple[Any, ...], Alternative]] = []
    for candidate in among:
        request = _request(availability, query, candidate, query.count)
        if not (count := min(query.count, rules.most_now(request) if at_once else rules.most_possible(request))):
            continue
        request = _request(availability, query, candidate, count)
        if rules.violations(request):
            continue
        price = prices.get(candidate.key)
        other = Alternative(
            offering=candidate.key,
            count=count,
            hours=query.hours,
            fits=rules.fits(request),
            price=None if price is None else price * count * query.hours,
        )
        found.append((_rank(query, candidate, other), other))
    return [other for _, other in sorted(found, key=lambda pair: pair[0])][:MAX_ALTERNATIVES]


def scheduled(query: AlternativesQuery, starts_at: datetime, prices: Mapping[str, Fraction]) -> Alternative:
    """The same request at a later time, when it is expected to be free; it queues then if it is not."""
    price = prices.get(query.offering.key)
    return Alternative(
        offering=query.offering.key,
        count=query.count,
        hours=query.hours,
        fits="queue",
        price=None if price is None else price * query.count * query.hours,
        starts_at=starts_at,
    )


def stand_ins(fleet: CapacitySnapshot, offering: Offering) -> list[Offering]:
    """The offering itself, smaller and larger slices, and other models; never one that is worse isolated. A claim says
    what it wants by itself, so nothing turns into one."""
    good = AS_GOOD[offering.isolation]
    others = [
        o for o in _same_cluster(fleet, offering) if o.key != offering.key and o.isolation in good and o.kind != "claim"
    ]
    return [offering, *others]


def isolated(fleet: CapacitySnapshot, offering: Offering) -> list[Offering]:
    """Return the isolated offerings in the cluster of this offering, for work that must not be disturbed."""
    return [o for o in _same_cluster(fleet, offering) if o.isolation != Isolation.NONE and o.kind != "claim"]


def _same_cluster(fleet: CapacitySnapshot, offering: Offering) -> list[Offering]:
    """Return all offerings of the cluster of this offering."""
    return [other for other in fleet.offerings() if other.flavor.cluster_id == offering.flavor.cluster_id]


def _request(availability: Availability, query: AlternativesQuery, candidate: Offering, count: int) -> AdmissionInput:
    constraints = query.constraints if CAPABILITIES[candidate.flavor.path].takes_constraints else ()
    return availability.admission_input(
        query.project,
        candidate,
        count,
        allocation_limits=query.allocation_limits,
        spread=query.spread,
        constraints=constraints,
    )


def _rank(query: AlternativesQuery, candidate: Offering, other: Alternative) -> tuple[Any, ...]:
    wanted = query.offering
    return (
        candidate.key != wanted.key,
        other.fits != "now",
        candidate.flavor_id != wanted.flavor_id,
        abs(candidate.gpu_share * other.count - wanted.gpu_share * query.count),
        -other.count,
        candidate.key,
    )
