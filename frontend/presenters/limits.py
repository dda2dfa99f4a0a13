"""Limits as tables: each pool with the fleet's capacity, each team's quotas, and loans."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from urllib.parse import urlencode

from django.urls import reverse

from allocations.capacity.quota_usage import QuotaUsage
from allocations.limits import services as limit_services
from allocations.queues.lending import Loan
from frontend.limit_form import ALL
from portal.tenants.access import Permissions
from portal.tenants.models import Department, Team
from quotas.catalog.models import Pool
from quotas.catalog.selectors import units
from quotas.limits.models import Limit
from quotas.limits.projection import DEFAULT_POLICY, Policy
from quotas.limits.selectors import QuotaSnapshot, name_of
from quotas.limits.services import holder_and_scope


@dataclass(frozen=True)
class QuotaLine:
    """One holder's quota of a pool, in the pool's units. ``limit`` is None if none is set."""

    holder: str
    kind: str
    limit: Limit | None
    nominal: int
    borrowing: str
    lending: str
    used: str
    meter: int
    is_over: bool


@dataclass(frozen=True)
class PoolTable:
    """A pool's quotas. ``available`` is what healthy devices have now; ``nominal`` the sum of all nominal quotas."""

    pool: Pool
    unit: str
    available: int
    nominal: int
    lines: list[QuotaLine]

    @property
    def overcommitted(self) -> int:
        return max(0, self.nominal - self.available)

    @property
    def is_divisible(self) -> bool:
        """Whether a GPU of it counts in two resources, so that a use is the larger of two fractions."""
        return len(self.pool.resources) > 1


@dataclass(frozen=True)
class CountedLine:
    """A limit that the portal counts. ``change`` is the form filled with it, empty for a person who may not set it."""

    limit: Limit
    used: str
    unit: str
    is_full: bool
    is_over: bool
    change: str


def tables(
    usage: QuotaUsage, pools: Iterable[Pool], limits: Iterable[Limit], shown: Iterable[Department | Team]
) -> list[PoolTable]:
    """Return the pools in their order, with the holders that the reader may see."""
    known = {(row.holder_kind, row.holder, row.scope): row for row in limits if row.is_enforced_by_kueue}
    holders = list(shown)
    found = []
    for pool in pools:
        used = usage.units_by_queue(pool)
        nominal = sum(quota.nominal for (_, key), quota in usage.quotas.quotas.items() if key == pool.key)
        lines = [_line(usage.quotas, used, pool, holder, known) for holder in holders]
        found.append(PoolTable(pool, limit_services.unit(pool), units(pool), nominal, lines))
    return found


def _line(
    quotas: QuotaSnapshot,
    used: dict[str, Fraction],
    pool: Pool,
    holder: Department | Team,
    known: dict[tuple[str, str, str], Limit],
) -> QuotaLine:
    is_team = isinstance(holder, Team)
    name = name_of(holder)
    quota = quotas.quota(name, pool.key)
    held = used.get(name, Fraction(0))
    kind = "team" if is_team else "department"
    stands_alone = quotas.parents[name] is None
    return QuotaLine(
        holder=holder.slug,
        kind=kind,
        limit=known.get((kind, holder.slug, pool.key)),
        nominal=quota.nominal,
        borrowing="–" if stands_alone else _bound(quota.borrowing),
        lending="–" if stands_alone else _bound(quota.lending),
        used=limit_services.text(held) if is_team else "–",
        meter=min(100, round(100 * held / quota.nominal)) if quota.nominal else 0,
        is_over=is_team and held > quota.nominal,
    )


def _bound(amount: int | None) -> str:
    return "Unlimited" if amount is None else str(amount)


def counted(limits: Iterable[Limit], permissions: Permissions) -> list[CountedLine]:
    return [
        CountedLine(
            row,
            limit_services.text(row.units_used),
            limit_services.unit(holder_and_scope(row)[1]),
            is_full=row.units_used >= row.nominal,
            is_over=row.units_used > row.nominal,
            change=_change(row) if _may_set(row, permissions) else "",
        )
        for row in limits
        if not row.is_enforced_by_kueue
    ]


def sums_shares(limits: Iterable[Limit], tables: Iterable[PoolTable]) -> bool:
    """Return whether a counted limit is in GPUs beside a quota whose use can differ from the sum of slices' shares."""
    return any(table.is_divisible for table in tables) and any(
        not row.is_enforced_by_kueue and row.offering_id is None for row in limits
    )


def _may_set(row: Limit, permissions: Permissions) -> bool:
    team = row.project.team_id if row.project else row.team_id or 0
    return permissions.can("limit.share" if row.project or row.user else "limit.manage", team)


def _change(row: Limit) -> str:
    of_what = f"{row.scope_kind}:{row.scope}" if row.scope_kind != ALL else ALL
    query = {"holder": f"{row.holder_kind}:{row.holder}", "scope": of_what, "nominal": row.nominal}
    return f"{reverse('limit')}?{urlencode(query)}"


@dataclass(frozen=True)
class Competitor:
    """The queue policy of a team or department; of a department only the weight counts."""

    kind: str
    holder: str
    policy: Policy


def competing(holders: Iterable[Department | Team], policies: Mapping[str, Policy]) -> list[Competitor]:
    return [
        Competitor(
            "team" if isinstance(holder, Team) else "department",
            holder.slug,
            policies.get(name_of(holder), DEFAULT_POLICY),
        )
        for holder in holders
    ]


@dataclass(frozen=True)
class LoanLine:
    pool: str
    borrower: str
    lender: str
    amount: str


def loans(found: Iterable[Loan]) -> list[LoanLine]:
    return [
        LoanLine(one.pool, one.borrower or "another team", one.lender or "other teams", limit_services.text(one.amount))
        for one in found
    ]
