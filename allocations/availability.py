"""What is free, what is held, and what a team can get: computed from observed holds, in a fixed number of queries."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Sum

from allocations import cards
from allocations.models import Allocation
from allocations.rules import Ask
from allocations.states import Phase
from portal.tenants.models import Project, Team
from quotas.catalog.models import Kind, Offering, Pool
from quotas.catalog.selectors import room, units
from quotas.limits.models import Limit
from quotas.metering.models import UsageInterval

Claimed = tuple[str, str, Mapping[str, int]]
"""An own claim whose lease reserves: team, offering, and the units that it may take at most."""
RESERVING = (Phase.STARTING, Phase.ACTIVE, Phase.LEAVING, Phase.RELEASING)
"""Phases in which Kueue counts the lease against the team's quota."""


@dataclass(frozen=True)
class Capacity:
    """Slices of one offering. ``total`` is on healthy devices and without what others use beside the portal.

    Where cards are cut on demand, ``free`` is what fits beside that which stands on them now."""

    total: int
    held: int
    free: int


@dataclass(frozen=True)
class Mine:
    """One team's side of an offering, in slices."""

    limit: int
    used: int
    can_get_now: int
    can_borrow: int = 0


@dataclass(frozen=True)
class Part:
    """What a claim asks of one pool of its flavor, and the team's quota there, in the pool's units rounded up."""

    pool: str
    asked: int
    limit: int
    used: int


class Stock:
    """Capacity of offerings, and teams' use of it: read once, asked often.

    ``cliques``: NVLink cliques will be asked about, which are read from the nodes.
    """

    def __init__(self, teams: Iterable[Team] = (), *, cliques: bool = False) -> None:
        self._offerings = {o.key: o for o in Offering.objects.select_related("pool__use", "flavor")}
        self._held = _held()
        self._claimed = _claimed()
        self._drawn = self._draw(self._held, self._claimed)
        self._limits = {(t, p): n for t, p, n in _limits(teams)}
        self._reserved = _reserved(teams)
        named = {o.flavor_id: o.flavor for o in self._offerings.values() if o.flavor.path == "dra"}
        self._cards = cards.of(named.values(), cliques=cliques)

    def capacity(self, offering: Offering) -> Capacity:
        pool, held = offering.pool, self._held.get(offering.key, 0)
        if offering.flavor.partitionable:
            there, piece = self._cards[offering.flavor_id], cards.piece(offering)
            total = there.total(piece, empty=True)
            return Capacity(total=total, held=held, free=there.total(piece))
        total = room(units(pool), pool.resources, _draws(offering))
        free = room(units(pool), pool.resources, _draws(offering), self._drawn.get(pool.key, {}))
        return Capacity(total=total, held=held, free=min(free, total))

    def mine(self, team: Team, offering: Offering) -> Mine:
        limit, left = self._quota(team, offering)
        return Mine(
            limit=limit,
            used=self._reserved.get((team.slug, offering.key), 0),
            can_get_now=max(0, min(left, self.capacity(offering).free)),
        )

    def ask(
        self,
        project: Project,
        offering: Offering,
        count: int,
        *,
        live: int = 0,
        spread: bool = False,
        constraints: Collection[str] = (),
    ) -> Ask:
        """A request of ``count`` slices as the rules read it."""
        capacity = self.capacity(offering)
        limit, left = self._quota(project.team, offering)
        there, piece = self._cards.get(offering.flavor_id), cards.piece(offering)
        together = {
            empty: there.together(piece, constraints, spread=spread, empty=empty) if there else None
            for empty in (True, False)
        }
        return Ask(
            offering=offering.key,
            pool=offering.pool.key,
            kind=offering.kind,
            path=offering.flavor.path,
            count=count,
            total=capacity.total,
            free=capacity.free,
            per_node=offering.per_node,
            quota=limit,
            used=max(0, limit - left),
            team=project.team.slug,
            hidden=not offering.is_offered,
            live=live,
            spread=spread,
            constraints=tuple(constraints),
            together=together[True],
            free_together=together[False],
            one_at_a_time=offering.one_at_a_time,
            replicas=offering.replicas,
            sharing=offering.sharing,
        )

    def offerings(self) -> list[Offering]:
        """What is offered, sorted by key."""
        return [o for _, o in sorted(self._offerings.items()) if o.is_offered]

    def _quota(self, team: Team, offering: Offering) -> tuple[int, int]:
        """Slices of the offering that the team's quota holds, and those still left of it beside all it draws."""
        pool = offering.pool
        nominal = self._limits.get((team.slug, pool.key), 0)
        drawn = self._drawn_by(team)
        limit = room(nominal, pool.resources, _draws(offering))
        return limit, room(nominal, pool.resources, _draws(offering), drawn.get(pool.key, {}))

    def parts(self, team: Team, offering: Offering, amounts: Mapping[str, int]) -> list[Part]:
        """A claim's amounts by the pools of its flavor that have them."""
        drawn = self._drawn_by(team)
        return [
            Part(
                pool.key,
                asked=_units(amounts, pool.resources),
                limit=self._limits.get((team.slug, pool.key), 0),
                used=_units(drawn.get(pool.key, {}), pool.resources),
            )
            for pool in self._pools(offering.flavor_id)
            if amounts.keys() & pool.resources.keys()
        ]

    def _pools(self, flavor: int) -> list[Pool]:
        pools = {o.pool.key: o.pool for o in self._offerings.values() if o.flavor_id == flavor}
        return [pool for _, pool in sorted(pools.items())]

    def _drawn_by(self, team: Team) -> dict[str, dict[str, int]]:
        slices = {key: n for (t, key), n in self._reserved.items() if t == team.slug}
        return self._draw(slices, [claimed for claimed in self._claimed if claimed[0] == team.slug])

    def _draw(self, slices: Mapping[str, int], claims: Iterable[Claimed]) -> dict[str, dict[str, int]]:
        """Pool → resource → amount drawn by so many slices of each offering, and by these claims."""
        drawn: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for key, count in slices.items():
            if offering := self._offerings.get(key):
                for resource, amount in offering.requests.items():
                    drawn[offering.pool.key][resource] += amount * count
        for _, key, amounts in claims:
            if offering := self._offerings.get(key):
                for pool in self._pools(offering.flavor_id):
                    for resource in amounts.keys() & pool.resources.keys():
                        drawn[pool.key][resource] += amounts[resource]
        return drawn


def _draws(offering: Offering) -> Mapping[str, int]:
    """What one slice draws; an own claim is spoken of in units of its flavor's main pool."""
    draws: Mapping[str, int] = offering.pool.resources if offering.kind == Kind.CLAIM else offering.requests
    return draws


def _units(amounts: Mapping[str, int], unit: Mapping[str, int]) -> int:
    return max((-(-amounts.get(resource, 0) // amount) for resource, amount in unit.items()), default=0)


def _held() -> dict[str, int]:
    rows = UsageInterval.objects.filter(end=None).order_by().values_list("offering").annotate(n=Sum("count"))
    return dict(rows)


def _limits(teams: Iterable[Team]) -> Iterable[tuple[str, str, int]]:
    return Limit.objects.filter(team__in=list(teams)).values_list("team__slug", "pool__key", "nominal")


def _reserved(teams: Iterable[Team]) -> dict[tuple[str, str], int]:
    rows = (
        Allocation.objects.filter(project__team__in=list(teams), ended_at=None, phase__in=RESERVING)
        .order_by()
        .values_list("project__team__slug", "offering__key")
        .annotate(n=Sum("count"))
    )
    return {(team, offering): n for team, offering, n in rows}


def _claimed() -> list[Claimed]:
    rows = Allocation.objects.filter(claim__isnull=False, ended_at=None, phase__in=RESERVING).order_by()
    found = rows.values_list("project__team__slug", "offering__key", "claim__built__units")
    return [(team, offering, amounts or {}) for team, offering, amounts in found]
