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
Parents = Mapping[str, str | None]


class Debt(NamedTuple):
    """``lender`` is a queue or a cohort, or empty for use beyond all quota (a limit was lowered)."""

    borrower: str
    lender: str
    amount: Fraction


def debts(parents: Parents, quotas: Mapping[str, Quota], usage: Mapping[str, Fraction]) -> list[Debt]:
    """Return who owes whom of one pool at one moment, in its units, sorted: ``parents`` of queues and cohorts, and the
    use of each queue are given.
    """
    found: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for loan in _loans(parents, quotas, usage):
        amount = sum(loan.lent.values(), Fraction(0))
        for borrower, borrowed in loan.borrowed.items():
            for lender, given in loan.lent.items():
                found[borrower, lender] += borrowed * given / amount
    return sorted(Debt(*pair, amount) for pair, amount in found.items())


def lent(parents: Parents, quotas: Mapping[str, Quota], usage: Mapping[str, Fraction]) -> Amounts:
    """Return what each queue and cohort lends, as ``debts``; without those that lend nothing."""
    found: Amounts = defaultdict(Fraction)
    for loan in _loans(parents, quotas, usage):
        for lender, given in loan.lent.items():
            if lender:
                found[lender] += given
    return found


class _Loan(NamedTuple):
    """What some borrow of others, in proportion on both sides; both add up to the same, and none of it is zero."""

    borrowed: Amounts
    lent: Amounts


def _loans(parents: Parents, quotas: Mapping[str, Quota], usage: Mapping[str, Fraction]) -> Iterator[_Loan]:
    """Yield the loans, from the nearest to the furthest, and what is used beyond all quota."""
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

    above = {name: _above(parents, name) for name in parents}
    for cohort in sorted(cohorts, key=lambda name: (-_depth(parents, name), name)):
        inside = [name for name in sorted(queues) if owed[name] and cohort in above[name]]
        for own in (True, False):
            if not inside:
                break
            sources = {cohort: idle[cohort]} if own else offered_within(cohort)
            loan = _loan(sources, {name: owed[name] for name in inside})
            for borrower, amount in loan.borrowed.items():
                owed[borrower] -= amount
            for lender, amount in loan.lent.items():
                idle[lender] -= amount
                for passed in _up_to(parents, lender, cohort):
                    lent_out[passed] += amount
            if loan.lent:
                yield loan
    left = {name: amount for name, amount in owed.items() if amount}
    if left:
        yield _Loan(left, {"": sum(left.values(), Fraction(0))})


def _loan(sources: Amounts, needs: Amounts) -> _Loan:
    """Return what the sources can give to those in need, in proportion on both sides."""
    offers, wanted = sum(sources.values(), Fraction(0)), sum(needs.values(), Fraction(0))
    moved = min(offers, wanted)
    if not moved:
        return _Loan({}, {})
    return _Loan(
        {borrower: moved * need / wanted for borrower, need in needs.items() if need},
        {lender: moved * has / offers for lender, has in sources.items() if has},
    )


def _idle(quota: Quota, used: Fraction) -> Fraction:
    free = max(Fraction(0), quota.nominal - used)
    return free if quota.lending is None else min(free, Fraction(quota.lending))


def _quota(quotas: Mapping[str, Quota], name: str) -> Quota:
    return quotas.get(name, ZERO_QUOTA)


def _above(parents: Parents, name: str) -> list[str]:
    found = []
    while (parent := parents.get(name)) is not None:
        found.append(parent)
        name = parent
    return found


def _up_to(parents: Parents, lender: str, cohort: str) -> list[str]:
    """Return the cohorts that a loan from the lender to members of `cohort` leaves."""
    way = [lender, *_above(parents, lender)]
    return way[: way.index(cohort)]


def _depth(parents: Parents, name: str) -> int:
    return len(_above(parents, name))


@dataclass(frozen=True)
class UsageChange:
    """A change of use or of nominal quota of ``name`` at a moment: ``used`` by that much, ``quota`` to that."""

    at: datetime
    name: str
    used: Fraction = Fraction(0)
    quota: Quota | None = None


def over_time(parents: Parents, changes: Iterable[UsageChange], until: datetime) -> list[Debt]:
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
