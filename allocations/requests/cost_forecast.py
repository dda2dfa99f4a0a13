"""Forecasts what a period will cost of what a person may see."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from portal.core import money
from portal.core.errors import NotVisible
from portal.tenants import access
from portal.tenants.models import Membership, User
from quotas.catalog.models import Offering
from quotas.costs import commitments, cost_history, forecast, rates, rating, selectors
from quotas.costs.calendar import UTC_CALENDAR, Calendar
from quotas.costs.cost_history import Scope
from quotas.costs.forecast import MIN_DAYS, DayPart, Forecast, Key, Prices, RemainingPart
from quotas.costs.rates import PriceList
from quotas.costs.rating import RatedUsage, Window


@dataclass(frozen=True)
class CostForecast:
    """What is ``posted`` of a window until now, what running holds are ``committed`` to in the rest of it, and the
    forecast of that rest: None if it is ``unknown``, which says why. Costs are without the unpriced GPU-hours;
    ``is_complete`` is whether there are none, of the use of past days neither.
    """

    window: Window
    as_of: datetime
    currency: str
    history_days: int
    posted: RatedUsage
    committed: RatedUsage
    forecast: Forecast | None
    unknown: str | None
    is_complete: bool

    def amounts(self) -> "ForecastAmounts":
        """Return the amounts, rounded once. ``total`` is the sum of the three parts as they are rounded."""
        posted, committed = _text(self.posted.cost), _text(self.committed.cost)
        if self.forecast is None:
            return ForecastAmounts(posted, committed)
        expected = money.text(self.forecast.expected)
        total = sum((Decimal(one) for one in (posted, committed, expected) if one is not None), Decimal(0))
        low = max(total - Decimal(money.text(self.forecast.below)), Decimal(posted or 0))
        high = total + Decimal(money.text(self.forecast.above))
        return ForecastAmounts(posted, committed, expected, *map(money.text, (total, low, high)))


@dataclass(frozen=True)
class ForecastAmounts:
    """The amounts of a forecast as decimal strings; None is without a price, or unknown."""

    posted: str | None
    committed: str | None
    expected: str | None = None
    total: str | None = None
    low: str | None = None
    high: str | None = None


def visible_scope(user: User, named: Mapping[str, str]) -> Scope:
    """Return what `user` may see of the department, team, project and member that are named, all that are not empty.

    Raises NotVisible for one that the user does not see: a member is seen by who is in a team with them.
    """
    checks: Mapping[str, Callable[[User, str], object]] = {
        "department": access.department_for,
        "team": access.team_for,
        "project": access.project_for,
        "member": _check_member,
    }
    scope: dict[str, Collection[str]] = {}
    for key, name in named.items():
        if name:
            checks[key](user, name)
            scope[key] = {name}
    if not access.sees_all(user):
        visible = set(access.visible_teams(user).values_list("slug", flat=True))
        scope["team"] = visible & set(scope.get("team", visible))
    return scope


def in_window(window: Window, scope: Scope, now: datetime, calendar: Calendar = UTC_CALENDAR) -> CostForecast:
    """Return the forecast of a window, in which `now` is, for a scope, in at most nine queries."""
    known = cost_history.read(window.start, scope, calendar, now)
    running, prices = commitments.running(scope), rates.read()
    changes = [each.valid_from for of in (prices.rates, prices.lists) for dated in of.values() for each in dated]
    parts = forecast.day_parts(now, window.end, calendar, changes)
    committed = commitments.rated(running, expected_ends({row.holder_id for row in running}, now), parts, prices)
    shares = _shares({key for day in known.days for key in day.used})
    remaining = [
        RemainingPart(part, rated.priced_cost, _prices_in(part, shares, prices))
        for part, rated in zip(parts, committed, strict=True)
    ]
    whole = sum(committed, RatedUsage())
    found = forecast.forecast(known.days, remaining)
    is_complete = not (known.posted + whole).unpriced_gpu_hours and not forecast.unpriced(known.days, remaining)
    unknown = None
    if found is None:
        unknown = f"unknown: {len(known.days)} days of history, {MIN_DAYS} are needed"
    elif not is_complete and not any(part.prices for part in remaining) and (known.posted + whole).cost is None:
        found, unknown = None, "unknown: nothing that was used has a price"
    return CostForecast(
        window, now, selectors.currency(), len(known.days), known.posted, whole, found, unknown, is_complete
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


def _check_member(user: User, name: str) -> None:
    people = User.objects.filter(username=name) if "\x00" not in name else User.objects.none()
    if not access.sees_all(user) and name != user.username:
        people = people.filter(pk__in=Membership.objects.filter(team__in=access.visible_teams(user)).values("user"))
    if not people.exists():
        raise NotVisible(f"The member {name}", hint="GET /members lists those of your teams.")


def _text(amount: Fraction | None) -> str | None:
    return None if amount is None else money.text(amount)
