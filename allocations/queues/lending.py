"""What teams borrow and lend: now, as Kueue counts it, and over time, from the ledger. Teams that a person may not see
are not named.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from allocations.capacity.quota_usage import QuotaUsage
from portal.core import clock
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
    """``borrower`` and ``lender`` are slugs: of a team, or of a department for its own quota; empty where the person
    does not see that team. ``amount`` is in the pool's units, or units times hours."""

    pool: str
    borrower: str
    lender: str
    amount: Fraction


@dataclass(frozen=True)
class Side:
    """What one team borrows and lends of one pool at this moment, in its units."""

    pool: str
    borrowed: Fraction
    lent: Fraction


def now(user: User, usage: QuotaUsage | None = None) -> list[Loan]:
    """What teams that the person sees borrow and lend at this moment, in the pools' units."""
    usage = usage or QuotaUsage()
    return _told(user, usage.quotas, _debts(usage))


def over(user: User, window: Window) -> list[Loan]:
    """In unit-hours."""
    return _told(user, quota_snapshot(), ledger.borrowed(window, clock.now()))


def of_team(team: Team) -> list[Side]:
    """By pool; those where it does neither are absent."""
    queue = names.cluster_queue(team.slug)
    found = []
    for pool, owed in _debts(QuotaUsage()).items():
        borrowed = sum((debt.amount for debt in owed if debt.borrower == queue), Fraction(0))
        lent = sum((debt.amount for debt in owed if debt.lender == queue), Fraction(0))
        if borrowed or lent:
            found.append(Side(pool, borrowed, lent))
    return found


def _debts(usage: QuotaUsage) -> dict[str, list[Debt]]:
    """By pool."""
    quotas = usage.quotas
    return {
        pool.key: lending.debts(quotas.parents, quotas.of_pool(pool.key), usage.units_by_queue(pool))
        for pool in pools().filter(flavor__accepted=True)
    }


def _told(user: User, quotas: QuotaSnapshot, owed: Mapping[str, Iterable[Debt]]) -> list[Loan]:
    """Loans of teams that the person sees; what strangers do among themselves is nothing to tell."""
    sees_all = access.sees_all(user)
    mine = {names.cluster_queue(slug): slug for slug in access.visible_teams(user).values_list("slug", flat=True)}
    above = {names.cohort(one.slug): one.slug for one in quotas.departments}
    sums: dict[tuple[str, str, str], Fraction] = defaultdict(Fraction)
    for pool, debts in owed.items():
        for debt in debts:
            if sees_all or debt.borrower in mine or debt.lender in mine:
                lender = mine.get(debt.lender) or above.get(debt.lender, "")
                sums[pool, mine.get(debt.borrower, ""), lender] += debt.amount
    return [Loan(*key, amount) for key, amount in sorted(sums.items())]
