"""An offering as a choice of the request form, and a team's headroom of it."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from allocations.capacity.headroom import Availability, TeamHeadroom
from allocations.capacity.snapshot import Capacity
from allocations.domain.backend_capabilities import CAPABILITIES, BackendCapabilities
from allocations.limits.services import text, unit
from allocations.requests import forecast, isolation
from allocations.requests.forecast import ExpectedRelease
from frontend.presenters import amounts
from frontend.presenters.pool_bars import PoolBar, pool_bar
from portal.tenants.models import Team
from quotas.catalog import selectors as catalog
from quotas.catalog.models import Isolation, Kind, Offering, Pool, Sharing
from quotas.catalog.node_shares import NodeShare
from quotas.limits import names as queue_names

SHARED: dict[str, str] = {Sharing.TIME_SLICING: "time-sliced"}
ISOLATION = {
    Isolation.FULL: "dedicated GPU",
    Isolation.HARDWARE: "isolated in hardware",
    Isolation.NONE: "shared, not isolated",
}


FEW_SLICES = 3
"""Up to so many slices of a model, none is folded."""
Releases = Callable[[], Sequence[ExpectedRelease]]
"""Called only if an offering is not available now."""


@dataclass(frozen=True)
class Offer:
    """One slice to choose. ``unavailable`` is empty if it can be requested; ``available_at`` is when the next one is
    expected, if none is available now.
    """

    key: str
    product: str
    flavor: str
    kind: str
    kind_value: str
    memory_gib: int
    isolation: str
    is_shared: bool
    node_share: NodeShare
    price: str
    per_hour: Fraction | None
    capacity: Capacity
    headroom: TeamHeadroom
    available_at: datetime | None
    unavailable: str

    @property
    def isolation_word(self) -> str:
        """The isolation as a cell says it: ``dedicated``, ``hardware``."""
        return self.isolation.removeprefix("isolated in ").removesuffix(" GPU")

    @property
    def cpu(self) -> str:
        """The CPUs that go with one slice; empty if no node has reported its capacity."""
        return amounts.cpu(self.node_share.cpu_millicores) if self.node_share else ""

    @property
    def ram(self) -> str:
        return amounts.memory(self.node_share.memory_mib) if self.node_share else ""


@dataclass(frozen=True)
class PoolUse:
    """What a team has reserved of a pool, of its guaranteed quota; in the pool's ``unit``. ``meter`` is in per cent."""

    key: str
    amount: Fraction
    used: str
    limit: int
    unit: str
    meter: int


@dataclass(frozen=True)
class SharedPool:
    """A pool that several offerings of a flavor share: what is reserved of one is not available to the others."""

    use: PoolUse
    bar: PoolBar


@dataclass(frozen=True)
class FlavorChoice:
    """A flavor with its slices, the largest first. ``notes`` explain its shared slices, if it has any."""

    group: str
    name: str
    product: str
    memory: str
    path: str
    pools: list[SharedPool]
    offers: list[Offer]
    notes: list[str]

    @property
    def is_folded(self) -> bool:
        """Whether MIG slices are folded: there are many slices, and others than MIG."""
        return len(self.offers) > FEW_SLICES and bool(self.mig) and len(self.mig) < len(self.offers)

    @property
    def mig(self) -> list[Offer]:
        return [offer for offer in self.offers if offer.kind_value == Kind.MIG]

    @property
    def unfolded(self) -> list[Offer]:
        """The slices that are always in sight."""
        return [offer for offer in self.offers if not self.is_folded or offer.kind_value != Kind.MIG]

    @property
    def has_claim(self) -> bool:
        return any(offer.kind_value == Kind.CLAIM for offer in self.offers)

    @property
    def is_out_of_reach(self) -> bool:
        return all(offer.unavailable for offer in self.offers)


def choices(
    team: Team, availability: Availability, prices: Mapping[str, Fraction], releases: Releases
) -> list[FlavorChoice]:
    """Return every flavor and what ``team`` may have of it, now or after one of ``releases``; flavors without anything
    for the team come last.
    """
    flavors: dict[str, list[Offering]] = {}
    for offering in availability.fleet.offerings():
        flavors.setdefault(offering.flavor.name, []).append(offering)
    found = [_choice(team, availability, rows, prices, releases) for rows in flavors.values()]
    return sorted(found, key=lambda choice: (choice.group, choice.is_out_of_reach))


def _choice(
    team: Team,
    availability: Availability,
    rows: list[Offering],
    prices: Mapping[str, Fraction],
    releases: Releases,
) -> FlavorChoice:
    rows = catalog.largest_first(rows)
    flavor = rows[0].flavor
    return FlavorChoice(
        group=flavor.group,
        name=flavor.name,
        product=product(rows[0]),
        memory=_gib(flavor.memory_mib),
        path=_path(CAPABILITIES[flavor.path]),
        pools=[_shared_pool(team, availability, pool, rows) for pool in _shared_pools(rows)],
        offers=[_offer(team, availability, row, prices.get(row.key), releases) for row in rows],
        notes=_notes(rows),
    )


def _shared_pools(rows: Iterable[Offering]) -> list[Pool]:
    """Return the pools that several of these offerings share, by key."""
    pools = {row.pool.key: row.pool for row in rows}
    counts = Counter(row.pool.key for row in rows)
    return [pool for key, pool in sorted(pools.items()) if counts[key] > 1]


def _shared_pool(team: Team, availability: Availability, pool: Pool, rows: Iterable[Offering]) -> SharedPool:
    use = pool_use(team, availability, pool)
    of_pool = [row for row in rows if row.pool_id == pool.pk]
    return SharedPool(use, pool_bar(team, availability, pool, of_pool, use.amount, use.limit))


def pool_use(team: Team, availability: Availability, pool: Pool) -> PoolUse:
    """Return what the team has reserved of the pool by all offerings of it, as Kueue counts it."""
    queue = queue_names.cluster_queue(team.slug)
    used = availability.quotas.units_by_queue(pool).get(queue, Fraction(0))
    limit = availability.quotas.quotas.quota(queue, pool.key).nominal
    return PoolUse(pool.key, used, text(used), limit, unit(pool), amounts.meter(used, limit))


def _path(backend: BackendCapabilities) -> str:
    label = backend.label[0].upper() + backend.label[1:]
    return f"{label}: {'you see the exact devices' if backend.names_devices else 'counted only, no device IDs'}"


def _notes(rows: Iterable[Offering]) -> list[str]:
    """Return why slices are not isolated, and which may only be requested one by one; each sentence once."""
    found = [isolation.slice_isolation(row).note for row in rows]
    found += [f"Request one {row.key} at a time." for row in rows if row.one_at_a_time]
    found += [
        f"CPU and RAM of {row.key} are those of the devices that match." for row in rows if row.kind == Kind.CLAIM
    ]
    return [note for note in dict.fromkeys(found) if note]


def _offer(
    team: Team,
    availability: Availability,
    offering: Offering,
    price: Fraction | None,
    releases: Releases,
) -> Offer:
    capacity, headroom = availability.fleet.capacity(offering), availability.headroom(team, offering)
    release = None
    if not headroom.can_get_now:
        release = forecast.earliest_fit(availability, team, offering, 1, releases())
    return Offer(
        key=offering.key,
        product=product(offering),
        flavor=offering.flavor.name,
        kind=_sentence_case(kind(offering)),
        kind_value=offering.kind,
        memory_gib=round(offering.memory_mib / 1024),
        isolation=ISOLATION[Isolation(offering.isolation)],
        is_shared=offering.isolation == Isolation.NONE,
        node_share=NodeShare() if offering.kind == Kind.CLAIM else offering.node_share,
        price=amounts.rate(price),
        per_hour=price,
        capacity=capacity,
        headroom=headroom,
        available_at=release.at if release else None,
        unavailable=_unavailable(team, capacity, headroom),
    )


def product(offering: Offering) -> str:
    """Return ``NVIDIA H100 80GB HBM3``, or the title that an operator gave.

    In the label's value hyphens stand for spaces, and suffixes repeat the kind of slice.
    """
    flavor = offering.flavor
    return flavor.title or flavor.product.removesuffix("-SHARED").partition("-MIG-")[0].replace("-", " ")


def kind(offering: Offering) -> str:
    """Return the kind of slice: ``MIG slice 1g.10gb``, ``time-sliced, 1 of 4 replicas``, ``vGPU``."""
    is_told = offering.sharing and offering.kind != Kind.CLAIM
    words = str(Sharing(offering.sharing).label if is_told else Kind(offering.kind).label)
    if offering.kind == Kind.SHARED:
        words = SHARED.get(offering.sharing, words)
    words = f"{words} {offering.profile}" if offering.profile else words
    return f"{words}, 1 of {offering.replicas} replicas" if offering.replicas > 1 else words


def name(offering: Offering) -> str:
    """Return product and kind: ``NVIDIA H100 80GB HBM3, MIG slice 1g.10gb``; a whole card has its product only."""
    return product(offering) if offering.kind == Kind.WHOLE else f"{product(offering)}, {kind(offering)}"


def _sentence_case(words: str) -> str:
    """Return the text with a capital, except for names that have their own spelling."""
    return words if words.startswith("v") else words[0].upper() + words[1:]


def _gib(mib: int) -> str:
    return f"{round(mib / 1024)} GiB" if mib else ""


def _unavailable(team: Team, capacity: Capacity, headroom: TeamHeadroom) -> str:
    if not capacity.total:
        return "No healthy device"
    if not headroom.max_quota:
        return f"No quota for team {team.slug}"
    return ""
