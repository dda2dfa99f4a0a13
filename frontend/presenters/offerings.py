"""An offering as a card to choose, and what a team has of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from allocations.availability import Capacity, Mine, Stock
from frontend.presenters import amounts
from portal.tenants.models import Team
from quotas.catalog.models import Isolation, Kind, Offering, Path

ISOLATION = {
    Isolation.FULL: ("A card of its own", "Nobody else's pods run on it."),
    Isolation.HARDWARE: ("Isolated in hardware", "A part of a card with its own memory and compute units (MIG)."),
    Isolation.NONE: (
        "Shared, not isolated",
        "Other people's pods run on the same card in turns: they share its memory, and a fault of one can end all.",
    ),
}
PATHS = {
    Path.DRA: ("by DRA", "You get named devices, and see their UUIDs."),
    Path.DEVICE_PLUGIN: ("by device plugin", "You get a count on the flavor; Kubernetes names no device."),
}


@dataclass(frozen=True)
class Offer:
    """``why_not`` is empty when the offering can be asked for."""

    key: str
    product: str
    kind: str
    memory: str
    isolation: str
    isolation_why: str
    is_shared: bool
    path: str
    path_why: str
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
    isolation, isolation_why = ISOLATION[Isolation(offering.isolation)]
    path, path_why = PATHS[Path(offering.flavor.path)]
    return Offer(
        key=offering.key,
        product=product(offering),
        kind=kind(offering),
        memory=memory(offering),
        isolation=isolation,
        isolation_why=isolation_why,
        is_shared=offering.isolation == Isolation.NONE,
        path=path,
        path_why=path_why,
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
