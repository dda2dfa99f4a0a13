"""Loans between teams: current ones, as Kueue counts them, and those of a period, from the ledger.

Teams that a person may not see are not named.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from allocations.capacity.quota_usage import QuotaUsage
from portal.core import clock
from portal.core.money import Hours
from portal.tenants import access
from portal.tenants.models import Team, User
from quotas.catalog.selectors import pools
from quotas.costs import lending as ledger
from quotas.costs.rating import Window
from quotas.limits import lending, names
from quotas.limits.lending import Debt
from quotas.limits.selectors import QuotaSnapshot, quota_snapshot


@dataclass(frozen=True)
class Loan:
    """A loan of quota."""

    pool: str
    borrower: Annotated[str, "Slug of the team; empty if you may not see it."]
    lender: Annotated[str, "Slug of the team, or of the department that has the quota; empty if you may not see it."]
    amount: Annotated[Hours, "Decimal: units of the pool now, unit-hours in a window."]


@dataclass(frozen=True)
class TeamBalance:
    """What one team borrows and lends of one pool now, in units of the pool."""

    pool: str
    borrowed: Hours
    lent: Hours


def current_loans(user: User, usage: QuotaUsage | None = None) -> list[Loan]:
    """Return the current loans of the teams that the person sees, in units of the pools."""
    usage = usage or QuotaUsage()
    return _visible_loans(user, usage.quotas, _debts(usage))


def loans_in(user: User, window: Window) -> list[Loan]:
    """Return the loans of a period of the teams that the person sees, in unit-hours."""
    return _visible_loans(user, quota_snapshot(), ledger.borrowed(window, clock.now()))


def of_team(team: Team) -> list[TeamBalance]:
    """Return the team's balance by pool, without pools of which it neither borrows nor lends."""
    queue = names.cluster_queue(team.slug)
    found = []
    for pool, debts in _debts(QuotaUsage()).items():
        borrowed = sum((debt.amount for debt in debts if debt.borrower == queue), Fraction(0))
        lent = sum((debt.amount for debt in debts if debt.lender == queue), Fraction(0))
        if borrowed or lent:
            found.append(TeamBalance(pool, borrowed, lent))
    return found


def _debts(usage: QuotaUsage) -> dict[str, list[Debt]]:
    """Return the current debts by pool key."""
    quotas = usage.quotas
    return {
        pool.key: lending.debts(quotas.parents, quotas.of_pool(pool.key), usage.units_by_queue(pool))
        for pool in pools().filter(flavor__accepted=True)
    }


def _visible_loans(user: User, quotas: QuotaSnapshot, debts_by_pool: Mapping[str, Iterable[Debt]]) -> list[Loan]:
    """Return the loans in which a team that the person sees takes part, summed by pool, borrower and lender."""
    sees_all = access.sees_all(user)
    team_of = {names.cluster_queue(slug): slug for slug in access.visible_teams(user).values_list("slug", flat=True)}
    department_of = {names.cohort(one.slug): one.slug for one in quotas.departments}
    sums: dict[tuple[str, str, str], Fraction] = defaultdict(Fraction)
    for pool, debts in debts_by_pool.items():
        for debt in debts:
            if sees_all or debt.borrower in team_of or debt.lender in team_of:
                lender = team_of.get(debt.lender) or department_of.get(debt.lender, "")
                sums[pool, team_of.get(debt.borrower, ""), lender] += debt.amount
    return [Loan(*key, amount) for key, amount in sorted(sums.items())]
