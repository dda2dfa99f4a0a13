"""What a lead sees first of the teams: spend of the month, who waits, and what is borrowed and lent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from django.utils.formats import date_format

from allocations.limits.services import text
from allocations.queues import lending, waiting
from allocations.queues.lending import Loan
from allocations.queues.waiting import WaitingEntry
from frontend.presenters import amounts, queues
from frontend.presenters.my_cost import MAX_LINES, CostLine, cost_lines
from frontend.presenters.queues import QueueLine
from portal.core import clock
from portal.tenants.models import Team, User
from quotas.costs import windows
from quotas.costs.answers import answer
from quotas.costs.calendar import Calendar
from quotas.costs.filters import as_filter
from quotas.costs.questions import Question, asked_by

FIRST = 5
"""So many waiting entries, of all the person's teams together, are on the page; a queue's own page has all."""
UNSEEN = "another team"
NOTHING = Fraction(0)


@dataclass(frozen=True)
class LedTeam:
    """A team's line. ``left_out`` says what its cost leaves out, or is empty."""

    slug: str
    cost: str
    left_out: str
    waiting: int


@dataclass(frozen=True)
class WaitingLine:
    team: str
    line: QueueLine


@dataclass(frozen=True)
class LedTeams:
    """``loans`` are sentences of what the teams borrow and lend now; ``more`` entries wait beside those shown."""

    month: str
    teams: Sequence[LedTeam]
    waiting: Sequence[WaitingLine]
    more: int
    loans: Sequence[tuple[str, str]]


def of_teams(user: User, teams: Sequence[Team], calendar: Calendar) -> LedTeams:
    """Return what there is of the first teams that the person leads; a fixed number of queries."""
    teams = teams[:MAX_LINES]
    now, slugs = clock.now(), [team.slug for team in teams]
    where = as_filter({"team": slugs})
    question = Question(windows.parse("month", now, calendar), now, keys=("team",), where=where, calendar=calendar)
    costs = answer(asked_by(user, question))
    rows = {line.name: line for line in cost_lines("team", costs, lambda _: "").lines}
    queued = waiting.of_teams(teams, FIRST)
    return LedTeams(
        month=date_format(calendar.day_of(now), "F Y"),
        teams=[_team(slug, rows.get(slug), costs.currency, queued.by_team) for slug in slugs],
        waiting=waiting_lines(queued.first),
        more=queued.total - len(queued.first),
        loans=list(_loans(lending.current_loans(user), set(slugs))),
    )


def waiting_lines(entries: Iterable[WaitingEntry]) -> list[WaitingLine]:
    return [WaitingLine(one.team, queues.line(one.entry)) for one in entries]


def _team(slug: str, line: CostLine | None, currency: str, counted: Mapping[str, int]) -> LedTeam:
    is_priced = line is not None and line.cost != amounts.NOT_PRICED
    return LedTeam(
        slug=slug,
        cost=f"{line.cost} {currency}"
        if line and is_priced
        else line.cost
        if line
        else amounts.money(NOTHING, currency),
        left_out=line.left_out if line else "",
        waiting=counted.get(slug, 0),
    )


def _loans(found: Iterable[Loan], led: set[str]) -> Iterable[tuple[str, str]]:
    """Yield the pool and a sentence of each loan in which a led team takes part."""
    for one in found:
        if led & {one.borrower, one.lender}:
            borrower, lender = one.borrower or UNSEEN, one.lender or UNSEEN
            yield one.pool, f"{borrower} borrows {text(one.amount)} from {lender}."
