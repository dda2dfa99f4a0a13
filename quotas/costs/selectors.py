"""Reads prices in force, cost to date, and sums over a window."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any
from uuid import UUID

from portal.core import clock, money
from portal.tenants import access
from portal.tenants.models import User
from quotas.catalog.models import Offering
from quotas.costs import (
    columns,
    currencies,
    exact_rows,
    filters,
    fleet_costs,
    idle_views,
    ledger,
    month_charges,
    rates,
    rating,
    rounded_rows,
    steps,
)
from quotas.costs.calendar import UTC_CALENDAR, Calendar
from quotas.costs.cost_rows import Costs
from quotas.costs.exact_rows import Question
from quotas.costs.filters import EVERYTHING, Where
from quotas.costs.fleet_costs import Readings
from quotas.costs.idle_views import HIDDEN, IdleView
from quotas.costs.rates import PriceList
from quotas.costs.rating import Usage, Window
from quotas.costs.run_rates import Metric
from quotas.costs.steps import Step
from quotas.metering import charged_intervals
from quotas.metering.charged_intervals import Charged, Row
from quotas.metering.held_intervals import HeldInterval
from quotas.metering.models import UsageInterval


@dataclass(frozen=True)
class Charge:
    """GPU-hours that were reserved, those of them that were used, and the cost of all that was reserved.

    `cost` is without `unpriced` GPU-hours, which have no price; None if that is all of them.
    """

    reserved: Fraction
    used: Fraction
    unpriced: Fraction
    cost: Fraction | None


NO_CHARGE = Charge(reserved=Fraction(0), used=Fraction(0), unpriced=Fraction(0), cost=Fraction(0))
"""The charge of what was never held."""


def currency() -> str:
    """Return the currency of all amounts."""
    return currencies.of_portal() or rates.NO_PRICE_YET


def prices_per_hour(offerings: Iterable[Offering], at: datetime) -> dict[str, Fraction]:
    """Return the price of one slice for one hour at `at`, by offering key, in one query; offerings without a price are
    absent.
    """
    listed = list(offerings)
    return slice_prices(listed, rates.read(offering.flavor.name for offering in listed), at)


def prices_with_currency(offerings: Iterable[Offering], at: datetime) -> tuple[dict[str, Fraction], str]:
    """Return `prices_per_hour` and the currency of all amounts; one query, and more if none ever had a price."""
    listed = list(offerings)
    prices = rates.read(offering.flavor.name for offering in listed)
    return slice_prices(listed, prices, at), prices.currency if prices.rates or prices.lists else currency()


def slice_prices(offerings: Iterable[Offering], prices: PriceList, at: datetime) -> dict[str, Fraction]:
    """Return the price of one slice for one hour at `at`, by offering key; offerings without a price are absent."""
    found = {}
    for offering in offerings:
        per_slice = rating.list_price_at(prices.lists.get(offering.key, ()), at)
        per_gpu = rating.rate_at(prices.rates.get(offering.flavor.name, ()), at)
        if per_slice is not None:
            found[offering.key] = per_slice
        elif per_gpu is not None:
            found[offering.key] = per_gpu * offering.gpu_share
    return found


def charges_to_date(holder_ids: Collection[UUID], now: datetime) -> dict[UUID, Charge]:
    """Return what each allocation or Job is charged for until `now`, exact, in two queries and one more if any holds
    named devices; zero for those never held.
    """
    intervals = list(UsageInterval.objects.filter(holder_id__in=holder_ids))
    prices = rates.read(row.flavor for row in intervals)
    return dict.fromkeys(holder_ids, NO_CHARGE) | charges(intervals, prices, now)


def charges(intervals: Iterable[UsageInterval | HeldInterval], prices: PriceList, now: datetime) -> dict[UUID, Charge]:
    """Return what the holders of the intervals are charged for until `now`, exact; one query if there are any named
    devices, for the other uses of their GPUs.
    """
    return charges_of(charged_intervals.until(intervals, now), prices, now)


def charges_of(
    charged: Iterable[Charged[Row]], prices: PriceList, now: datetime, by: str = "holder_id"
) -> dict[UUID, Charge]:
    """Return what the pieces of intervals are charged for until `now`, exact, by holder, or by interval (`key`)."""
    found: dict[UUID, list[tuple[Usage, bool]]] = defaultdict(list)
    for one in charged:
        found[getattr(one.row, by)].append((usage_of(one), one.row.unused))
    sums = {}
    for key, rows in found.items():
        rated = rating.rated_usage((usage for usage, _ in rows), prices.rates, None, now, prices.lists)
        unused = rating.gpu_hours((usage for usage, is_unused in rows if is_unused), None, now)
        sums[key] = Charge(rated.gpu_hours, rated.gpu_hours - unused, rated.unpriced_gpu_hours, rated.cost)
    return sums


def usage_of(one: Charged[Row]) -> Usage:
    """Return what a piece of an interval is rated by."""
    row = one.row
    share = Fraction(row.gpu_share_numerator, row.gpu_share_denominator)
    return Usage(row.flavor, one.gpus, one.start, one.end, not row.uncharged, row.offering, share)


def visible_costs(
    user: User, window: Window, aggregate: Sequence[str], *, idle: IdleView | None = HIDDEN, **more: Any
) -> Costs:
    """Return `costs` of the teams whose things `user` may read; `idle` None is the view with most that they may see.

    Raises Forbidden for a view of the fleet for who does not see all of it.
    """
    return costs(window, aggregate, **_visible(user, idle), **more)


def visible_question(
    user: User, window: Window, aggregate: Sequence[str], *, idle: IdleView | None, **more: Any
) -> Question:
    """Return the question that `visible_costs` answers; raise what it raises."""
    return question(window, aggregate, **_visible(user, idle), **more)


def _visible(user: User, idle: IdleView | None) -> dict[str, Any]:
    sees_all = access.sees_all(user)
    view = idle_views.for_person(idle, sees_all=sees_all)
    teams = None if sees_all else list(access.visible_teams(user).values_list("slug", flat=True))
    return {"teams": teams, "idle": view}


def costs(
    window: Window,
    aggregate: Sequence[str] = ("project",),
    *,
    step: Step = Step.ALL,
    calendar: Calendar = UTC_CALENDAR,
    where: Where = EVERYTHING,
    teams: Collection[str] | None = None,
    now: datetime | None = None,
    idle: IdleView = HIDDEN,
    metric: Metric = Metric.CUMULATIVE,
    readings: Readings | None = None,
) -> Costs:
    """Return usage and cost in `window` by the keys in `aggregate` (of `columns`), in two queries. Answers with the
    same `readings` share what they read.

    Unless `idle` hides it, also what nobody is charged for, in rows of its own (`fleet_costs.IDLE`) if there are keys
    other than `fleet_costs.KEYS`; what is idle in the rows that `idle` says.

    Each `step` of the `calendar` has rows of its own. `teams` are the slugs whose costs may be seen, None for all.
    Amounts are rounded once over the whole answer, by largest remainder: hours to 6 places and money to 4, so that the
    rows add up to the sums. Run-rates (`metric`) of a step add up to that of the step.
    """
    asked = question(
        window,
        aggregate,
        step=step,
        calendar=calendar,
        where=where,
        teams=teams,
        now=now,
        idle=idle,
        metric=metric,
    )
    unit, is_entered = month_charges.currency_and_existence()
    rows, charges, since = exact_rows.whole(asked, readings, is_entered=is_entered)
    found = [one.used for one in rows]
    whole, rate = ledger.total(found, window).usage, asked.factor(window)
    added = [month_charges.total(of, rate) for of in (charges.adjustment, charges.shared)]
    return Costs(
        window=window,
        currency=unit,
        rows=rounded_rows.cost_rows(asked, rows, unit),
        gpu_hours=money.text(whole.gpu_hours, money.HOURS_PLACES),
        unpriced_gpu_hours=money.hours_text(whole.unpriced_gpu_hours),
        total=month_charges.whole_text(None if whole.cost is None else whole.cost * rate, added),
        capacity_recorded_since={
            one: at for one, at in since.items() if teams is None and fleet_costs.keeps_cluster(asked.kept, one)
        },
        billed_share=money.text(charges.billed_share) if charges.billed_share else None,
    )


def question(
    window: Window,
    aggregate: Sequence[str],
    *,
    step: Step,
    calendar: Calendar,
    where: Where,
    teams: Collection[str] | None,
    now: datetime | None,
    idle: IdleView,
    metric: Metric,
) -> Question:
    """Return the question that the parameters of `costs` ask; raise Invalid for what cannot be asked."""
    kept = filters.as_filter(where) if teams is None else filters.both(where, {"team": teams})
    keys = columns.grouped_by(aggregate)
    columns.check("filter", filters.keys(kept))
    edges = steps.edges(window, step, calendar)
    return Question(edges, keys, kept, now or clock.now(), idle, metric, teams is None)
