"""Finds alternative requests that would be accepted, the most similar first."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Annotated, Any

from allocations.capacity.headroom import Availability
from allocations.capacity.snapshot import CapacitySnapshot
from allocations.domain.admission import AdmissionInput, Fact
from allocations.domain.backend_capabilities import CAPABILITIES
from allocations.domain.documents import FieldInfo
from allocations.requests import rules
from portal.core import money
from portal.core.money import Hours, Money
from portal.tenants.models import Project
from quotas.catalog.models import Isolation, Offering

MAX_ALTERNATIVES = 5
ACCEPTABLE_ISOLATION: Mapping[str, frozenset[str]] = {
    Isolation.FULL: frozenset({Isolation.FULL, Isolation.HARDWARE}),
    Isolation.HARDWARE: frozenset({Isolation.FULL, Isolation.HARDWARE}),
    Isolation.NONE: frozenset(Isolation.values),
}
"""Isolation levels of an alternative by that of the requested slice: never a shared one for an isolated one."""

FITS = FieldInfo(choices=("now", "queue", "never"))


@dataclass(frozen=True)
class Alternative:
    """Another request that no rule refuses. ``starts_at`` is None if it starts now."""

    offering: str
    count: int
    hours: Annotated[Hours, "Decimal."]
    fits: Annotated[str, FITS]
    price: Annotated[Money | None, "Decimal, in total."]
    starts_at: datetime | None = None

    def document(self) -> dict[str, Any]:
        """Return the alternative as in the REST API, with amounts as decimal strings."""
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
    at: datetime | None
    facts: Mapping[Fact[Any], Any]
    spread: bool
    constraints: tuple[str, ...]


def ranked_alternatives(
    availability: Availability,
    query: AlternativesQuery,
    candidates: Iterable[Offering],
    prices: Mapping[str, Fraction],
    *,
    fits_now: bool = False,
) -> list[Alternative]:
    """Return the alternatives, best first.

    The order is: the same offering, fits now, the same flavor, a slice of similar memory and part of a GPU, a similar
    size, a higher count. ``fits_now`` keeps only those that fit now. Slices with less than half the memory are left
    out: what was meant for the larger one would not start there.
    """
    found: list[tuple[tuple[Any, ...], Alternative]] = []
    for candidate in candidates:
        if 0 < 2 * _memory(candidate) < _memory(query.offering):
            continue
        request = _request(availability, query, candidate, query.count)
        if not (
            count := min(query.count, rules.max_available_now(request) if fits_now else rules.max_possible(request))
        ):
            continue
        request = _request(availability, query, candidate, count)
        if rules.violations(request):
            continue
        price = prices.get(candidate.key)
        alternative = Alternative(
            offering=candidate.key,
            count=count,
            hours=query.hours,
            fits=rules.fits(request),
            price=None if price is None else price * count * query.hours,
        )
        found.append((_rank(query, candidate, alternative), alternative))
    return [alternative for _, alternative in sorted(found, key=lambda pair: pair[0])][:MAX_ALTERNATIVES]


def scheduled_alternative(query: AlternativesQuery, starts_at: datetime, prices: Mapping[str, Fraction]) -> Alternative:
    """Return the same request with a later start, when capacity is expected; it queues then if there is none."""
    price = prices.get(query.offering.key)
    return Alternative(
        offering=query.offering.key,
        count=query.count,
        hours=query.hours,
        fits="queue",
        price=None if price is None else price * query.count * query.hours,
        starts_at=starts_at,
    )


def candidate_offerings(fleet: CapacitySnapshot, offering: Offering) -> list[Offering]:
    """Return the offering itself and those of its cluster with an acceptable isolation.

    Custom claims are left out, since they have no fixed size.
    """
    levels = ACCEPTABLE_ISOLATION[offering.isolation]
    others = [
        o
        for o in _same_cluster(fleet, offering)
        if o.key != offering.key and o.isolation in levels and o.kind != "claim"
    ]
    return [offering, *others]


def isolated_offerings(fleet: CapacitySnapshot, offering: Offering) -> list[Offering]:
    """Return the isolated offerings in the cluster of this offering."""
    return [o for o in _same_cluster(fleet, offering) if o.isolation != Isolation.NONE and o.kind != "claim"]


def _same_cluster(fleet: CapacitySnapshot, offering: Offering) -> list[Offering]:
    """Return all offerings of the cluster of this offering."""
    return [other for other in fleet.offerings() if other.flavor.cluster_id == offering.flavor.cluster_id]


def _request(availability: Availability, query: AlternativesQuery, candidate: Offering, count: int) -> AdmissionInput:
    constraints = query.constraints if CAPABILITIES[candidate.flavor.path].takes_constraints else ()
    request = availability.admission_input(
        query.project,
        candidate,
        count,
        at=query.at,
        facts=query.facts,
        spread=query.spread,
        constraints=constraints,
    )
    return availability.with_free_devices(request, candidate)


def _memory(offering: Offering) -> Fraction:
    """Return the GPU memory of a slice in MiB; 0 if it is not known."""
    return offering.memory_part * offering.flavor.whole_gpu_mib


def _difference(one: Fraction, other: Fraction) -> Fraction:
    """Return by how much the larger amount exceeds the smaller, as a part of the larger: 0 to 1."""
    return abs(one - other) / (max(one, other) or 1)


def _rank(query: AlternativesQuery, candidate: Offering, alternative: Alternative) -> tuple[Any, ...]:
    offering = query.offering
    return (
        candidate.key != offering.key,
        alternative.fits != "now",
        candidate.flavor_id != offering.flavor_id,
        _difference(_memory(candidate), _memory(offering)) + _difference(candidate.gpu_share, offering.gpu_share),
        abs(candidate.gpu_share * alternative.count - offering.gpu_share * query.count),
        -alternative.count,
        candidate.key,
    )
