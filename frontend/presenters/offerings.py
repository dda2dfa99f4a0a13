"""An offering as a choice of the request form, and a team's headroom of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from allocations.capacity.headroom import Availability, TeamHeadroom
from allocations.capacity.snapshot import Capacity
from allocations.domain.backend_capabilities import CAPABILITIES, BackendCapabilities
from allocations.requests import forecast, isolation
from allocations.requests.forecast import ExpectedRelease
from frontend.presenters import amounts
from portal.tenants.models import Team
from quotas.catalog.models import Isolation, Kind, Offering, Sharing

ISOLATION = {
    Isolation.FULL: "dedicated GPU",
    Isolation.HARDWARE: "isolated in hardware",
    Isolation.NONE: "shared, not isolated",
}


Releases = Callable[[], Sequence[ExpectedRelease]]
"""Called only if an offering is not available now."""


@dataclass(frozen=True)
class Offer:
    """One slice to choose. ``unavailable`` is empty if it can be requested; ``available_at`` is when the next one is
    expected, if none is available now.
    """

    key: str
    kind: str
    memory: str
    isolation: str
    is_shared: bool
    node_share: str
    price: str
    capacity: Capacity
    headroom: TeamHeadroom
    available_at: datetime | None
    unavailable: str


@dataclass(frozen=True)
class FlavorChoice:
    """A flavor with its slices, the largest first. ``notes`` explain its shared slices, if it has any."""

    group: str
    name: str
    product: str
    memory: str
    path: str
    offers: list[Offer]
    notes: list[str]

    @property
    def is_out_of_reach(self) -> bool:
        return all(offer.unavailable for offer in self.offers)


def choices(
    team: Team, availability: Availability, prices: Mapping[str, Fraction], currency: str, releases: Releases
) -> list[FlavorChoice]:
    """Return every flavor and what ``team`` may have of it, now or after one of ``releases``; flavors without anything
    for the team come last.
    """
    flavors: dict[str, list[Offering]] = {}
    for offering in availability.fleet.offerings():
        flavors.setdefault(offering.flavor.name, []).append(offering)
    found = [_choice(team, availability, rows, prices, currency, releases) for rows in flavors.values()]
    return sorted(found, key=lambda choice: (choice.group, choice.is_out_of_reach))


def _choice(
    team: Team,
    availability: Availability,
    rows: list[Offering],
    prices: Mapping[str, Fraction],
    currency: str,
    releases: Releases,
) -> FlavorChoice:
    largest_first = sorted(
        rows, key=lambda row: (row.kind == Kind.CLAIM, -row.gpu_share, row.kind != Kind.WHOLE, row.key)
    )
    flavor = rows[0].flavor
    return FlavorChoice(
        group=flavor.group,
        name=flavor.name,
        product=product(rows[0]),
        memory=_gib(flavor.memory_mib),
        path=_path(CAPABILITIES[flavor.path]),
        offers=[_offer(team, availability, row, prices.get(row.key), currency, releases) for row in largest_first],
        notes=_notes(largest_first),
    )


def _path(backend: BackendCapabilities) -> str:
    words = "you see which devices" if backend.names_devices else "a count, no device is named"
    return f"by {backend.label}: {words}"


def _notes(rows: Iterable[Offering]) -> list[str]:
    """Return why slices are not isolated, and which may only be requested one by one; each sentence once."""
    found = [isolation.slice_isolation(row).note for row in rows]
    found += [f"Of {row.key} a request gets one at a time." for row in rows if row.one_at_a_time]
    return [note for note in dict.fromkeys(found) if note]


def _offer(
    team: Team,
    availability: Availability,
    offering: Offering,
    price: Fraction | None,
    currency: str,
    releases: Releases,
) -> Offer:
    capacity, headroom = availability.fleet.capacity(offering), availability.headroom(team, offering)
    release = None
    if not headroom.can_get_now:
        release = forecast.earliest_fit(availability, team, offering, 1, releases())
    return Offer(
        key=offering.key,
        kind=_sentence_case(kind(offering)),
        memory=memory(offering),
        isolation=ISOLATION[Isolation(offering.isolation)],
        is_shared=offering.isolation == Isolation.NONE,
        node_share=_node_share(offering),
        price=amounts.NOT_PRICED if price is None else f"{amounts.money(price, currency)} per hour",
        capacity=capacity,
        headroom=headroom,
        available_at=release.at if release else None,
        unavailable=_unavailable(team, capacity, headroom),
    )


def _node_share(offering: Offering) -> str:
    """Return the CPU and memory that go with one slice; empty if no node has reported its capacity."""
    if not offering.node_share:
        return ""
    if offering.kind == Kind.CLAIM:
        return "With CPU and memory of its node by what it takes."
    return f"With {amounts.node_share(offering.node_share)} of its node."


def product(offering: Offering) -> str:
    """Return ``NVIDIA H100 80GB HBM3``, or the title that an operator gave.

    In the label's value hyphens stand for spaces, and suffixes repeat the kind of slice.
    """
    flavor = offering.flavor
    return flavor.title or flavor.product.removesuffix("-SHARED").partition("-MIG-")[0].replace("-", " ")


def kind(offering: Offering) -> str:
    """Return the kind of slice: ``MIG slice 1g.10gb``, ``slice by time-slicing 1g.10gb``, ``vGPU``."""
    is_told = offering.sharing and offering.kind != Kind.CLAIM
    words = Sharing(offering.sharing).label if is_told else Kind(offering.kind).label
    if offering.kind == Kind.SHARED:
        words = f"slice by {words}"
    return f"{words} {offering.profile}" if offering.profile else str(words)


def name(offering: Offering) -> str:
    """Return product and kind: ``NVIDIA H100 80GB HBM3, MIG slice 1g.10gb``; a whole card has its product only."""
    return product(offering) if offering.kind == Kind.WHOLE else f"{product(offering)}, {kind(offering)}"


def memory(offering: Offering) -> str:
    """Return the memory of one slice; of a shared one, what all that share it have together."""
    amount = _gib(offering.memory_mib)
    return f"{amount} between {offering.replicas}" if amount and offering.replicas > 1 else amount


def _sentence_case(words: str) -> str:
    """Return the text with a capital, except for names that have their own spelling."""
    return words if words.startswith("v") else words[0].upper() + words[1:]


def _gib(mib: int) -> str:
    return f"{round(mib / 1024)} GiB" if mib else ""


def _unavailable(team: Team, capacity: Capacity, headroom: TeamHeadroom) -> str:
    if not capacity.total:
        return "No healthy device offers it now."
    if not headroom.max_quota:
        return f"Team {team.slug} has no quota of it; an operator can give it a limit."
    return ""


@dataclass(frozen=True)
class HeadroomLine:
    """A team's headroom of one offering, in slices; ``left`` is what it can get now, ``borrowed`` the part of it that
    others would lend.
    """

    offering: str
    product: str
    kind: str
    used: int
    limit: int
    left: int
    borrowed: int


def headroom(teams: Iterable[Team], availability: Availability) -> list[tuple[Team, list[HeadroomLine]]]:
    """Return what each team has of each offering that it has a limit for, by the function that admits requests."""
    found = []
    for team in teams:
        sides = [(offering, availability.headroom(team, offering)) for offering in availability.fleet.offerings()]
        rows = [
            HeadroomLine(o.key, product(o), kind(o), side.used, side.limit, side.can_get_now, side.can_borrow)
            for o, side in sides
            if side.max_quota
        ]
        found.append((team, rows))
    return found
