"""Forecasts what a period will cost of what a person may see."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Annotated
from uuid import UUID

from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from portal.core import money
from portal.core.errors import NotVisible
from portal.core.money import DecimalString
from portal.core.quotation import named
from portal.tenants import access
from portal.tenants.models import Membership, User
from quotas.catalog.models import Offering
from quotas.costs import columns, commitments, cost_history, filters, forecast, month_charges, rates, rating
from quotas.costs.calendar import UTC_CALENDAR, month_of
from quotas.costs.fleet_costs import Readings
from quotas.costs.forecast import MIN_DAYS, DayPart, Forecast, Key, Prices, RemainingPart
from quotas.costs.questions import HIDDEN, Question, asked_by
from quotas.costs.rates import PriceList
from quotas.costs.rating import MICROSECOND, RatedUsage, Window


def _check_member(user: User, name: str) -> None:
    people = User.objects.filter(username=name) if "\x00" not in name else User.objects.none()
    if not access.sees_all(user) and name != user.username:
        people = people.filter(pk__in=Membership.objects.filter(team__in=access.visible_teams(user)).values("user"))
    if not people.exists():
        raise NotVisible(f"The member {named(name)}", hint="GET /members lists those of your teams.")


SCOPE: Mapping[str, Callable[[User, str], object]] = {
    "department": access.department_for,
    "team": access.team_for,
    "project": access.project_for,
    "member": _check_member,
}
"""The keys by which a forecast can be chosen without a filter, and what raises NotVisible for a name."""
SUM_HELP = "null if it is unknown; `reason` says why."
NOT_KNOWN_OF_MONTHS = "unknown: bills or fixed costs of the time until now are not known yet"


@dataclass(frozen=True)
class AddedCosts:
    """What bills and fixed costs add to what is rated until now, and fixed costs to the ``rest`` of the window, at the
    pace of the present month until now. None is not known.
    """

    until_now: tuple[Fraction | None, Fraction | None] = (Fraction(0), Fraction(0))
    rest: Fraction | None = Fraction(0)


@dataclass(frozen=True)
class CostForecast:
    """What is ``rated`` of a window until now, what running holds are ``committed`` to in the rest of it, what bills
    and fixed costs add, and the forecast of that rest: None if it is ``unknown``, which says why. Costs are without the
    unpriced GPU-hours; ``is_complete`` is whether there are none, of the use of past days neither.
    """

    window: Window
    as_of: datetime
    timezone: str
    currency: str
    history_days: int
    rated: RatedUsage
    committed: RatedUsage
    added: AddedCosts
    forecast: Forecast | None
    unknown: str | None
    is_complete: bool

    @cached_property
    def amounts(self) -> "ForecastAmounts":
        """Return the amounts, rounded once. ``total`` is the sum of the parts as they are rounded."""
        posted = month_charges.whole_text(self.rated.cost, self.added.until_now)
        committed, fixed = _text(self.committed.cost), _text(self.added.rest)
        if self.forecast is None:
            return ForecastAmounts(posted, committed, fixed)
        expected = money.text(self.forecast.expected)
        known = [Decimal(one) for one in (posted, committed, fixed, expected) if one is not None]
        total, least = sum(known, Decimal(0)), Decimal(posted or 0) + Decimal(fixed or 0)
        low = max(total - Decimal(money.text(self.forecast.below)), least)
        high = total + Decimal(money.text(self.forecast.above))
        return ForecastAmounts(posted, committed, fixed, expected, *map(money.text, (total, low, high)))


@dataclass(frozen=True)
class ForecastAmounts:
    """The amounts of a forecast; None is without a price, or unknown."""

    posted: Annotated[
        DecimalString | None, "The total of /costs from the start of the window until as_of, or null as there."
    ]
    committed: Annotated[
        DecimalString | None, "What runs now, until its end or that of the window; null if none of it has a price."
    ]
    shared_cost: Annotated[
        DecimalString | None, "Fixed costs of the rest of the window, at the pace of the present month until now."
    ]
    expected: Annotated[DecimalString | None, f"New use, beyond what is committed. {SUM_HELP}"] = None
    total: Annotated[DecimalString | None, f"The sum of the four. {SUM_HELP}"] = None
    low: Annotated[DecimalString | None, f"By past errors the total is lower in 10 %. {SUM_HELP}"] = None
    high: Annotated[DecimalString | None, f"By past errors the total is higher in 10 %. {SUM_HELP}"] = None


def visible(user: User, question: Question, named: Mapping[str, str]) -> Question:
    """Return the question of what `user` may see, and of the department, team, project and member that are named, all
    that are not empty. Raises Invalid for a filter by what is no key of costs.

    Raises NotVisible for a name that the user does not see: a member is seen by who is in a team with them.
    """
    columns.check("filter", filters.keys(question.where))
    for key, name in named.items():
        if name:
            SCOPE[key](user, name)
    kept = filters.both(question.where, {key: [name] for key, name in named.items() if name})
    return asked_by(user, replace(question, where=kept, idle=HIDDEN))


def in_window(question: Question) -> CostForecast:
    """Return the forecast of the question's window, in which its `now` is, in at most nine queries, and as many more
    as `month_charges.of_held` takes where a bill or fixed cost was entered.
    """
    window, now = question.window, question.now
    known = cost_history.read(question)
    running, prices = commitments.running(question.scope), rates.read()
    currency, is_entered = month_charges.currency_and_existence()
    added = _added(question) if is_entered else AddedCosts()
    changes = [each.valid_from for of in (prices.rates, prices.lists) for dated in of.values() for each in dated]
    parts = forecast.day_parts(now, window.end, question.calendar, changes)
    committed = commitments.rated(running, expected_ends({row.holder_id for row in running}, now), parts, prices)
    shares = _shares({key for day in known.days for key in day.used})
    remaining = [
        RemainingPart(part, rated.priced_cost, _prices_in(part, shares, prices))
        for part, rated in zip(parts, committed, strict=True)
    ]
    whole = sum(committed, RatedUsage())
    found = forecast.forecast(known.days, remaining)
    is_complete = not (known.rated + whole).unpriced_gpu_hours and not forecast.unpriced(known.days, remaining)
    unknown = None
    if found is None:
        unknown = (
            f"unknown: {len(known.days)} day{'' if len(known.days) == 1 else 's'} of history, {MIN_DAYS} are needed"
        )
    elif not is_complete and not any(part.prices for part in remaining) and (known.rated + whole).cost is None:
        found, unknown = None, "unknown: nothing that was used has a price"
    elif None in (*added.until_now, added.rest):
        found, unknown = None, NOT_KNOWN_OF_MONTHS
    zone, days = str(question.calendar.zone), len(known.days)
    return CostForecast(window, now, zone, currency, days, known.rated, whole, added, found, unknown, is_complete)


def _added(question: Question) -> AddedCosts:
    """Return what bills and fixed costs add to what is asked for."""
    window, now = question.window, question.now
    if window.start == now:
        return AddedCosts()
    since = max(UTC_CALENDAR.start_of(month_of(UTC_CALENDAR.day_of(now))), window.start)
    until_now = replace(question, keys=(columns.ALL,)).between(sorted({window.start, since, now}))
    charges = month_charges.of_held(until_now, Readings(now))
    of_month = {group: amount for group, amount in charges.shared.items() if group[0].start >= since}
    pace = month_charges.total(of_month) if now > since else Fraction(0)
    ahead = Fraction((window.end - now) // MICROSECOND, max((now - since) // MICROSECOND, 1))
    return AddedCosts(
        (month_charges.total(charges.adjustment), month_charges.total(charges.shared)),
        None if pace is None else pace * ahead,
    )


def expected_ends(holders: Collection[UUID], now: datetime) -> dict[UUID, datetime]:
    """Return when the time of each allocation is over; now, if it is being released. Jobs have no end. One query."""
    rows = Allocation.objects.filter(pk__in=holders)
    return {row.pk: now if _is_released(row) else spec_of_row.time(row).expected_end(now) for row in rows}


def _is_released(row: Allocation) -> bool:
    return row.desired == Allocation.Desired.RELEASED


def _shares(keys: Collection[Key]) -> dict[Key, Fraction]:
    """Return what a slice of each offering takes of a GPU now; one query."""
    offerings = {one.key: one.gpu_share for one in Offering.objects.filter(flavor__name__in={key[0] for key in keys})}
    return {key: offerings.get(key[1], rating.ONE) for key in keys}


def _prices_in(part: DayPart, shares: Mapping[Key, Fraction], prices: PriceList) -> Prices:
    """Return the price of a GPU-hour of what was used, as in force from the start of the part on."""
    found: dict[Key, Fraction] = {}
    for (flavor, offering), share in shares.items():
        of_flavor, listed = prices.rates.get(flavor, ()), prices.lists.get(offering, ())
        [(price, _, _)] = rating.by_price(
            of_flavor, part.start, part.start + rating.MICROSECOND, listed=listed, slice_share=share
        )
        if price is not None:
            found[flavor, offering] = price
    return found


def _text(amount: Fraction | None) -> str | None:
    return None if amount is None else money.text(amount)
