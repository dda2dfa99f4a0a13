"""Other requests that would be accepted, the likeliest first."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from allocations.capacity.snapshot import Stock
from allocations.domain.admission import AllocationLimit, Ask
from allocations.requests import rules
from portal.core import money
from portal.tenants.models import Project
from quotas.catalog.models import Isolation, Offering

MOST = 5
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
class Near:
    """What the alternatives are to be near to."""

    project: Project
    offering: Offering
    count: int
    hours: Fraction
    allocation_limits: tuple[AllocationLimit, ...]
    spread: bool
    constraints: tuple[str, ...]


def ranked(
    stock: Stock, near: Near, among: Iterable[Offering], prices: Mapping[str, Fraction], *, at_once: bool = False
) -> list[Alternative]:
    """Fewer of the same first; then what fits now, of the same flavor, of a like size, most of it. ``at_once`` keeps
    what fits now."""
    found: list[tuple[tuple[Any, ...], Alternative]] = []
    for candidate in among:
        ask = _ask(stock, near, candidate, near.count)
        if not (count := min(near.count, rules.most_now(ask) if at_once else rules.most_possible(ask))):
            continue
        ask = _ask(stock, near, candidate, count)
        if rules.bindings(ask):
            continue
        price = prices.get(candidate.key)
        other = Alternative(
            offering=candidate.key,
            count=count,
            hours=near.hours,
            fits=rules.fits(ask),
            price=None if price is None else price * count * near.hours,
        )
        found.append((_rank(near, candidate, other), other))
    return [other for _, other in sorted(found, key=lambda pair: pair[0])][:MOST]


def later(near: Near, starts_at: datetime, prices: Mapping[str, Fraction]) -> Alternative:
    """The same at a later time, when it is expected to be free; it is scheduled then, and queues if it is not."""
    price = prices.get(near.offering.key)
    return Alternative(
        offering=near.offering.key,
        count=near.count,
        hours=near.hours,
        fits="queue",
        price=None if price is None else price * near.count * near.hours,
        starts_at=starts_at,
    )


def stand_ins(stock: Stock, offering: Offering) -> list[Offering]:
    """The offering itself, smaller and larger slices, and other models; never one that is worse isolated. A claim says
    what it wants by itself, so nothing turns into one."""
    good = AS_GOOD[offering.isolation]
    others = [
        o for o in _same_cluster(stock, offering) if o.key != offering.key and o.isolation in good and o.kind != "claim"
    ]
    return [offering, *others]


def isolated(stock: Stock, offering: Offering) -> list[Offering]:
    """What work that must not be disturbed can be given, where the offering is."""
    return [o for o in _same_cluster(stock, offering) if o.isolation != Isolation.NONE and o.kind != "claim"]


def _same_cluster(stock: Stock, offering: Offering) -> list[Offering]:
    """What is offered in its cluster."""
    return [other for other in stock.offerings() if other.flavor.cluster_id == offering.flavor.cluster_id]


def _ask(stock: Stock, near: Near, candidate: Offering, count: int) -> Ask:
    constraints = near.constraints if candidate.flavor.path == "dra" else ()
    return stock.ask(
        near.project,
        candidate,
        count,
        allocation_limits=near.allocation_limits,
        spread=near.spread,
        constraints=constraints,
    )


def _rank(near: Near, candidate: Offering, other: Alternative) -> tuple[Any, ...]:
    wanted = near.offering
    return (
        candidate.key != wanted.key,
        other.fits != "now",
        candidate.flavor_id != wanted.flavor_id,
        abs(candidate.gpu_share * other.count - wanted.gpu_share * near.count),
        -other.count,
        candidate.key,
    )
