"""What a lead sees first of the teams: who holds what and what of it is idle, who waits, what is borrowed, and the
spend of the month.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from uuid import UUID

from django.urls import reverse
from django.utils.formats import date_format

from allocations.capacity.headroom import Availability
from allocations.limits.services import text
from allocations.queues import lending, waiting
from allocations.queues.lending import Loan
from allocations.queues.waiting import WaitingEntry
from allocations.requests import team_holds
from allocations.requests.team_holds import TeamHold
from frontend.presenters import amounts, queues
from frontend.presenters.allocations import Card
from frontend.presenters.home import quotas
from frontend.presenters.home.counters import Counter, first_of
from frontend.presenters.home.engineers import IDLE
from frontend.presenters.queues import QueueLine
from portal.core import clock
from portal.tenants.models import Team, User
from quotas.costs import windows
from quotas.costs.answers import answer
from quotas.costs.calendar import Calendar
from quotas.costs.cost_rows import CostRow
from quotas.costs.filters import as_filter
from quotas.costs.questions import Question, asked_by

FIRST = 5
"""So many waiting entries, of all the person's teams together, are on the page; a queue's own page has all."""
MAX_HOLDS = 20
"""So many holds are on the page, those without a pod first; the list of allocations has all."""
MAX_TEAMS = 20
UNSEEN = "another team"


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
class HoldLine:
    """What a person holds; ``idle`` is for how long it has had no pod, empty while one uses it."""

    id: str
    url: str
    name: str
    member: str
    what: str
    idle: str
    per_hour: str
    ends_at: datetime | None
    can_release: bool


@dataclass(frozen=True)
class LedTeams:
    """``loans`` are sentences of what the teams borrow and lend now, and ``borrowed`` amount and pool of what they
    borrow. ``more`` entries wait beside those shown. ``of_idle`` are the people of what has had no pod for some
    minutes, each hold once. ``near`` names the quotas that are nearly used.
    """

    month: str
    currency: str
    teams: Sequence[LedTeam]
    cost: str
    waiting: Sequence[WaitingLine]
    more: int
    loans: Sequence[tuple[str, str]]
    borrowed: Sequence[str]
    holds: Sequence[HoldLine]
    more_holds: int
    of_idle: Sequence[str]
    near: Sequence[str]


def of_teams(
    user: User,
    teams: Sequence[Team],
    calendar: Calendar,
    availability: Availability,
    read_cards: Callable[[Collection[UUID]], Sequence[Card]],
) -> LedTeams:
    """Return what there is of the first teams that the person leads; a fixed number of queries."""
    teams = teams[:MAX_TEAMS]
    now, slugs = clock.now(), [team.slug for team in teams]
    where = as_filter({"team": slugs})
    question = Question(windows.parse("month", now, calendar), now, keys=("team",), where=where, calendar=calendar)
    costs = answer(asked_by(user, question))
    rows = {row.name: row for row in costs.rows}
    queued = waiting.of_teams(teams, FIRST)
    loans = lending.current_loans(user, availability.quotas)
    held = team_holds.of_teams(teams)
    shown = held[:MAX_HOLDS]
    cards = {card.row.pk: card for card in read_cards([one.id for one in shown])} if shown else {}
    return LedTeams(
        month=date_format(calendar.day_of(now), "F Y"),
        currency=costs.currency,
        teams=[_team(slug, rows.get(slug), costs.currency, queued.by_team) for slug in slugs],
        cost=amounts.money(None if costs.total is None else Fraction(costs.total), costs.currency),
        waiting=waiting_lines(queued.first),
        more=queued.total - len(queued.first),
        loans=list(_loans(loans, set(slugs))),
        borrowed=[f"{text(one.amount)} {one.pool}" for one in loans if one.borrower in slugs],
        holds=_hold_lines(shown, cards, now),
        more_holds=len(held) - len(shown),
        of_idle=[one.member for one in held if one.idle_since and now - one.idle_since >= IDLE],
        near=[
            f"{one.model} {one.meter} %"
            for _, models in quotas.of_teams(teams, availability)
            for one in models
            if one.is_near
        ],
    )


def waiting_lines(entries: Iterable[WaitingEntry]) -> list[WaitingLine]:
    return [WaitingLine(one.team, queues.line(one.entry)) for one in entries]


def _hold_lines(found: Iterable[TeamHold], cards: Mapping[UUID, Card], now: datetime) -> list[HoldLine]:
    """Return the holds of which there are cards by person: who has the longest without a pod is first."""
    by_member: dict[str, list[HoldLine]] = {}
    for one in found:
        if card := cards.get(one.id):
            idle = amounts.span(now - one.idle_since) if one.idle_since else ""
            by_member.setdefault(one.member, []).append(_hold_line(card, one.member, idle))
    return [line for lines in by_member.values() for line in lines]


def _hold_line(card: Card, member: str, idle: str) -> HoldLine:
    return HoldLine(
        id=card.id,
        url=card.address,
        name=card.row.name,
        member=member,
        what=f"{card.row.slices} × {card.row.offering.key}",
        idle=idle,
        per_hour=amounts.rate(card.detail.per_hour),
        ends_at=card.row.ends_at,
        can_release=card.can_release,
    )


def _team(slug: str, row: CostRow | None, currency: str, counted: Mapping[str, int]) -> LedTeam:
    total = row.total if row else "0"
    cost = amounts.money(None if total is None else Fraction(total), currency)
    left_out = amounts.left_out(Fraction(row.unpriced_gpu_hours)) if row and total is not None else ""
    return LedTeam(slug, cost, left_out, counted.get(slug, 0))


def _loans(found: Iterable[Loan], led: set[str]) -> Iterable[tuple[str, str]]:
    """Yield the pool and a sentence of each loan in which a led team takes part."""
    for one in found:
        if led & {one.borrower, one.lender}:
            borrower, lender = one.borrower or UNSEEN, one.lender or UNSEEN
            yield one.pool, f"{borrower} borrows {text(one.amount)} from {lender}."


def _idle(found: LedTeams) -> tuple[int, str]:
    return len(found.of_idle), first_of(list(dict.fromkeys(found.of_idle)))


def _waiting(found: LedTeams) -> tuple[int, str]:
    by_team = [f"{one.slug} {one.waiting}" for one in found.teams if one.waiting]
    return len(found.waiting) + found.more, first_of(by_team) if len(found.teams) > 1 else ""


def _queue(found: LedTeams) -> str:
    most = max(found.teams, key=lambda one: one.waiting)
    return reverse("queue", args=[most.slug])


def _costs(found: LedTeams) -> str:
    if len(found.teams) == 1:
        return reverse("team-cost", args=[found.teams[0].slug])
    return f"{reverse('costs')}?window=month&aggregate=team"


COUNTERS: tuple[Counter[LedTeams], ...] = (
    Counter("Holds without a pod", "warn", _idle, lambda _: "#holds"),
    Counter("Quotas nearly used", "warn", lambda found: (len(found.near), first_of(found.near)), lambda _: "#quotas"),
    Counter("Waiting in your teams", "wait", _waiting, _queue),
    Counter("Borrowed", "wait", lambda one: (len(one.borrowed), first_of(one.borrowed)), lambda _: reverse("limits")),
    Counter("Cost this month", "quiet", lambda found: (found.cost, found.month), _costs),
)
