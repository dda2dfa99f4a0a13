"""An offering as a card to choose, and what a team has of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from allocations.availability import Capacity, Mine, Stock
from frontend.presenters import amounts
from portal.tenants.models import Team
from quotas.catalog.models import Isolation, Kind, Offering, Path

ISOLATION = {
    Isolation.FULL: "A card of its own",
    Isolation.HARDWARE: "Isolated in hardware, with its own memory",
    Isolation.NONE: "Shared, not isolated",
}
WHY_NOT_ISOLATED = "Other people's pods take turns on the same card: they share its memory, and a fault can end all."
PATHS = {
    Path.DRA: "by DRA: you see which devices",
    Path.DEVICE_PLUGIN: "by device plugin: a count, no device is named",
}


@dataclass(frozen=True)
class Offer:
    """``warning`` says what a shared slice means; ``why_not`` is empty when the offering can be asked for."""

    key: str
    product: str
    kind: str
    memory: str
    isolation: str
    warning: str
    path: str
    price: str
    capacity: Capacity
    mine: Mine
    why_not: str


def offers(team: Team, stock: Stock, prices: Mapping[str, Fraction], currency: str) -> list[Offer]:
    """Every offering as ``team`` may have it; what it may not have comes last, with the reason."""
    found = [offer(team, stock, offering, prices.get(offering.key), currency) for offering in stock.offerings()]
    return sorted(found, key=lambda o: bool(o.why_not))


def offer(team: Team, stock: Stock, offering: Offering, price: Fraction | None, currency: str) -> Offer:
    capacity, mine = stock.capacity(offering), stock.mine(team, offering)
    return Offer(
        key=offering.key,
        product=product(offering),
        kind=kind(offering),
        memory=memory(offering),
        isolation=ISOLATION[Isolation(offering.isolation)],
        warning=WHY_NOT_ISOLATED if offering.isolation == Isolation.NONE else "",
        path=PATHS[Path(offering.flavor.path)],
        price=amounts.NO_PRICE if price is None else f"{amounts.money(price, currency)} per hour",
        capacity=capacity,
        mine=mine,
        why_not=_why_not(team, capacity, mine),
    )


def product(offering: Offering) -> str:
    """``NVIDIA H100 80GB HBM3``: the label's value, whose hyphens stand for spaces."""
    return offering.flavor.product.replace("-", " ")


def kind(offering: Offering) -> str:
    words = Kind(offering.kind).label
    return f"{words} {offering.profile}" if offering.profile else str(words)


def memory(offering: Offering) -> str:
    """Of the whole card; a profile says its own memory in its name."""
    if not offering.flavor.memory_mib:
        return ""
    gib = f"{round(offering.flavor.memory_mib / 1024)} GiB"
    return gib if offering.kind == Kind.WHOLE else f"{gib} card"


def _why_not(team: Team, capacity: Capacity, mine: Mine) -> str:
    if not capacity.total:
        return "No healthy device offers it now."
    if not mine.limit:
        return f"Team {team.slug} has no quota of it; an operator can give it a limit."
    return ""


@dataclass(frozen=True)
class Headroom:
    """One offering beside a team's limit, in slices; ``left`` is what the team can get at this moment."""

    offering: str
    product: str
    kind: str
    used: int
    limit: int
    left: int


def headroom(teams: Iterable[Team], stock: Stock) -> list[tuple[Team, list[Headroom]]]:
    """What each team has of each offering that it has a limit for, by the function that admits requests."""
    found = []
    for team in teams:
        sides = [(offering, stock.mine(team, offering)) for offering in stock.offerings()]
        rows = [
            Headroom(o.key, product(o), kind(o), mine.used, mine.limit, mine.can_get_now)
            for o, mine in sides
            if mine.limit
        ]
        found.append((team, rows))
    return found
