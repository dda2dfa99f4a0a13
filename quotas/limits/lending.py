"""Attributes borrowed quota to lenders. Pure.

Kueue knows what a queue borrows, not from whom. The portal attributes it: from the nearest department first, there from
the department's own quota, then from its teams that do not use theirs and the departments within it, from each in
proportion to what it has idle and may lend; only the rest from further away.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import NamedTuple

from quotas.limits.tree import ZERO_QUOTA, Quota

Amounts = dict[str, Fraction]


class Debt(NamedTuple):
    """``lender`` is a queue or a cohort, or empty for use beyond all quota (a limit was lowered)."""

    borrower: str
    lender: str
    amount: Fraction


def debts(parents: Mapping[str, str | None], quotas: Mapping[str, Quota], usage: Mapping[str, Fraction]) -> list[Debt]:
    """Return who owes whom of one pool at one moment, in its units, sorted: ``parents`` of queues and cohorts, and the
    use of each queue are given.
    """
    cohorts = {parent for parent in parents.values() if parent is not None}
    cohorts |= {name for name, parent in parents.items() if parent is None}
    queues = parents.keys() - cohorts
    owed = {name: max(Fraction(0), usage.get(name, Fraction(0)) - _quota(quotas, name).nominal) for name in queues}
    idle = {name: _idle(_quota(quotas, name), usage.get(name, Fraction(0))) for name in queues}
    idle |= {name: Fraction(_quota(quotas, name).nominal) for name in cohorts}
    lent_out: Amounts = defaultdict(Fraction)  # out of each cohort
    within: dict[str, list[str]] = defaultdict(list)
    for name in sorted(parents):
        within[parents[name] or ""].append(name)

    def offered(name: str) -> Amounts:
        """Return what the queue or cohort, and those within it, can still lend to others."""
        if name in queues:
            return {name: idle[name]}
        offers = {name: idle[name]} | offered_within(name)
        bound, all_ = _quota(quotas, name).lending, sum(offers.values(), Fraction(0))
        lendable = all_ if bound is None else max(Fraction(0), bound - lent_out[name])
        return offers if all_ <= lendable else {lender: has * lendable / all_ for lender, has in offers.items()}

    def offered_within(cohort: str) -> Amounts:
        return {lender: has for child in within[cohort] for lender, has in offered(child).items()}

    found: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for cohort in sorted(cohorts, key=lambda name: (-_depth(parents, name), name)):
        inside = sorted(name for name in queues if cohort in _above(parents, name))
        for own in (True, False):
            sources = {cohort: idle[cohort]} if own else offered_within(cohort)
            moved = _match_loans(sources, {name: owed[name] for name in inside}, found, owed)
            for lender, amount in moved.items():
                idle[lender] -= amount
                for passed in _up_to(parents, lender, cohort):
                    lent_out[passed] += amount
    for name, left in owed.items():
        if left:
            found[name, ""] += left
    return sorted(Debt(*pair, amount) for pair, amount in found.items() if amount)


def _match_loans(sources: Amounts, needs: Amounts, found: dict[tuple[str, str], Fraction], owed: Amounts) -> Amounts:
    """Move what the sources have to those in need, in proportion on both sides; return what each source gave."""
    offers, wanted = sum(sources.values(), Fraction(0)), sum(needs.values(), Fraction(0))
    moved = min(offers, wanted)
    if not moved:
        return {}
    for borrower, need in needs.items():
        for lender, has in sources.items():
            found[borrower, lender] += moved * need / wanted * has / offers
        owed[borrower] -= moved * need / wanted
    return {lender: moved * has / offers for lender, has in sources.items()}


def _idle(quota: Quota, used: Fraction) -> Fraction:
    free = max(Fraction(0), quota.nominal - used)
    return free if quota.lending is None else min(free, Fraction(quota.lending))


def _quota(quotas: Mapping[str, Quota], name: str) -> Quota:
    return quotas.get(name, ZERO_QUOTA)


def _above(parents: Mapping[str, str | None], name: str) -> list[str]:
    found = []
    while (parent := parents.get(name)) is not None:
        found.append(parent)
        name = parent
    return found


def _up_to(parents: Mapping[str, str | None], lender: str, cohort: str) -> list[str]:
    """Return the cohorts that a loan from the lender to members of `cohort` leaves."""
    way = [lender, *_above(parents, lender)]
    return way[: way.index(cohort)]


def _depth(parents: Mapping[str, str | None], name: str) -> int:
    return len(_above(parents, name))


@dataclass(frozen=True)
class UsageChange:
    """A change of use or of nominal quota of ``name`` at a moment: ``used`` by that much, ``quota`` to that."""

    at: datetime
    name: str
    used: Fraction = Fraction(0)
    quota: Quota | None = None


def over_time(parents: Mapping[str, str | None], changes: Iterable[UsageChange], until: datetime) -> list[Debt]:
    """Return the unit-hours of each debt, from the first change on until ``until``. Half-open; exact."""
    hours: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    usage: Amounts = defaultdict(Fraction)
    quotas: dict[str, Quota] = {}
    for change, length in _with_lengths(sorted(changes, key=lambda one: one.at), until):
        usage[change.name] += change.used
        if change.quota is not None:
            quotas[change.name] = change.quota
        if length:
            for debt in debts(parents, quotas, usage):
                hours[debt.borrower, debt.lender] += debt.amount * length
    return sorted(Debt(*pair, amount) for pair, amount in hours.items() if amount)


def _with_lengths(changes: list[UsageChange], until: datetime) -> Iterator[tuple[UsageChange, Fraction]]:
    """Yield each change with the hours until the next one."""
    for number, change in enumerate(changes):
        end = min(changes[number + 1].at if number + 1 < len(changes) else until, until)
        length = max(end - change.at, timedelta(0))
        yield (
            change,
            Fraction(length.days * 86400 + length.seconds) / 3600 + Fraction(length.microseconds, 3_600_000_000),
        )
