"""Limits that the portal counts, queue policies and loans, as tables."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from allocations.limits import services as limit_services
from allocations.queues.lending import Loan
from frontend.limit_form import ALL
from portal.tenants.access import Permissions
from portal.tenants.models import Department, Team
from quotas.limits.models import Limit
from quotas.limits.projection import DEFAULT_POLICY, Policy
from quotas.limits.selectors import name_of
from quotas.limits.services import holder_and_scope


@dataclass(frozen=True)
class CountedLine:
    """A limit that the portal counts. ``change`` is the form filled with it, empty for a person who may not set it."""

    limit: Limit
    used: str
    unit: str
    is_full: bool
    is_over: bool
    change: str


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


def sums_shares(limits: Iterable[Limit], *, is_divisible: bool) -> bool:
    """Return whether a counted limit is in GPUs beside a quota whose use can differ from the sum of slices' shares."""
    return is_divisible and any(not row.is_enforced_by_kueue and row.offering_id is None for row in limits)


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
    url: str


def competing(holders: Iterable[Department | Team], policies: Mapping[str, Policy]) -> list[Competitor]:
    kinds = [("team" if isinstance(holder, Team) else "department", holder) for holder in holders]
    return [
        Competitor(
            kind,
            holder.slug,
            policies.get(name_of(holder), DEFAULT_POLICY),
            reverse(f"{kind}-policy", args=[holder.slug]),
        )
        for kind, holder in kinds
    ]


@dataclass(frozen=True)
class LoanLine:
    pool: str
    borrower: str
    lender: str
    amount: str

    @property
    def unit_hours(self) -> str:
        """Return what a unit of the pool is for an hour."""
        return "GPU-hours" if self.pool.endswith(("/slices", "/gpu")) else "slice-hours"


def loans(found: Iterable[Loan]) -> list[LoanLine]:
    return [
        LoanLine(one.pool, one.borrower or "another team", one.lender or "other teams", limit_services.text(one.amount))
        for one in found
    ]
