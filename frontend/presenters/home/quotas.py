"""A team's quota as one line for each GPU model, with the headroom of each offering."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from allocations.capacity.headroom import Availability
from allocations.limits.services import text
from frontend.presenters import amounts, offerings
from frontend.presenters.model_use import gpus_per_unit
from frontend.presenters.offerings import PoolUse
from portal.tenants.models import Team
from quotas.catalog import selectors as catalog
from quotas.catalog.models import Offering

NEAR = 90
"""From so many per cent on, a quota is nearly used."""


@dataclass(frozen=True)
class HeadroomLine:
    """A team's headroom of one offering, in slices; ``left`` is what it can get now, ``borrowed`` the part of it that
    others would lend.
    """

    offering: str
    product: str
    kind: str
    limit: int
    left: int
    borrowed: int


@dataclass(frozen=True)
class PoolHeadroom:
    """A pool's use by a team, and the team's headroom of each offering of the pool."""

    use: PoolUse
    lines: list[HeadroomLine] = field(default_factory=list)


@dataclass(frozen=True)
class ModelQuota:
    """A team's quota of a GPU model in GPUs. ``meter`` is the used part in per cent; ``free`` is what the team can get
    now, ``borrowed`` the part of it that others would lend, empty if none.
    """

    team: str
    model: str
    product: str
    used: str
    limit: str
    free: str
    borrowed: str
    meter: int
    pools: Sequence[PoolHeadroom]

    @property
    def is_near(self) -> bool:
        return self.meter >= NEAR


def of_teams(teams: Iterable[Team], availability: Availability) -> list[tuple[Team, list[ModelQuota]]]:
    """Return what each team has of each model that it has a quota of, by the function that admits requests."""
    return [(team, _models(team, availability)) for team in teams]


def _models(team: Team, availability: Availability) -> list[ModelQuota]:
    by_flavor: dict[str, list[Offering]] = {}
    for one in availability.fleet.offerings():
        by_flavor.setdefault(one.flavor.name, []).append(one)
    found = (_model(team, availability, name, rows) for name, rows in sorted(by_flavor.items()))
    return [model for model in found if model.pools]


def _model(team: Team, availability: Availability, name: str, rows: Iterable[Offering]) -> ModelQuota:
    pools: dict[str, PoolHeadroom] = {}
    free: dict[str, tuple[Fraction, Fraction]] = {}
    used = limit = Fraction(0)
    for one in catalog.largest_first(rows):
        side = availability.headroom(team, one)
        if not side.max_quota:
            continue
        key, product = one.pool.key, offerings.product(one)
        if key not in pools:
            pools[key] = PoolHeadroom(offerings.pool_use(team, availability, one.pool))
            used += pools[key].use.amount * gpus_per_unit(one)
            limit += pools[key].use.limit * gpus_per_unit(one)
        line = HeadroomLine(one.key, product, offerings.kind(one), side.limit, side.can_get_now, side.can_borrow)
        pools[key].lines.append(line)
        now = (side.can_get_now * one.gpu_share, side.can_borrow * one.gpu_share)
        free[key] = max(free.get(key, now), now)
    borrowed = sum((amount for _, amount in free.values()), Fraction(0))
    return ModelQuota(
        team=team.slug,
        model=name,
        product=product if pools else "",
        used=text(used),
        limit=text(limit),
        free=text(sum((amount for amount, _ in free.values()), Fraction(0))),
        borrowed=text(borrowed) if borrowed else "",
        meter=amounts.meter(used, limit),
        pools=[pool for _, pool in sorted(pools.items())],
    )
