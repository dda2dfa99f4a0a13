"""The figures on top of the costs page: this period, change, forecast, idle, and hours without a price."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from allocations.requests.cost_forecast import CostForecast
from frontend import time_zone
from frontend.presenters.amounts import forecast_range, money, number
from frontend.presenters.costs import PLACES, idle_total, missing
from quotas.costs.cost_rows import Costs


@dataclass(frozen=True)
class Tile:
    """A figure as it is shown; ``exact`` is the same as REST has it, empty if it is none. ``note`` has one line; what
    does not fit in it is in its title. ``link`` is a word and the address of what makes the figure. ``later`` is the
    address from which the figure is loaded after the page.
    """

    id: str
    title: str
    figure: str
    exact: str
    note: str
    link: tuple[str, str] | None = None
    later: str = ""


def tiles(found: Costs, unit: str, *, changes: str, forecast: str, shows_idle: bool) -> Sequence[Tile]:
    """Return the figures. ``changes`` is the address of what changed most, ``forecast`` that of the forecast, empty
    where the period has none.
    """
    shown = [_period(found, unit), _change(found, unit, changes)]
    if forecast:
        shown.append(Tile("forecast", "Forecast", "–", "", "", ("Show the forecast", forecast), forecast))
    if shows_idle:
        shown.append(_idle(found, unit))
    return [*shown, _unpriced(found)]


def _period(found: Costs, unit: str) -> Tile:
    figure = missing(found.rows) if found.total is None else f"{number(Decimal(found.total))} {unit}"
    hours = f"{number(Decimal(found.gpu_hours))} GPU-hours"
    note = ". ".join(filter(None, [parts_of_total(found) or hours, unrecorded(found)]))
    return Tile("period", "This period", figure, found.total or "", note)


def parts_of_total(found: Costs) -> str:
    """Return what the total consists of, ``4,990.60 GPU + 79.13 fixed``, which adds up to it; empty if that is GPUs
    alone.
    """
    if found.total is None:
        return ""
    bills = sum((Decimal(row.adjustment or 0) for row in found.rows), Decimal(0))
    fixed = sum((Decimal(row.shared_cost or 0) for row in found.rows), Decimal(0))
    parts = [(round(bills, PLACES), "bills"), (round(fixed, PLACES), "fixed")]
    gpus = round(Decimal(found.total), PLACES) - sum(amount for amount, _ in parts)
    named = [f"{number(gpus)} GPU", *(f"{number(amount)} {word}" for amount, word in parts if amount)]
    return " + ".join(named) if len(named) > 1 else ""


def unrecorded(found: Costs) -> str:
    """Return since when the period is recorded, if that is not from its start on; else empty."""
    since = found.previous.unrecorded_until if found.previous else None
    return f"Recorded only since {time_zone.words(since)}." if since and since > found.window.start else ""


def _change(found: Costs, unit: str, changes: str) -> Tile:
    before = found.previous
    assert before is not None
    span = f"{time_zone.words(before.window.start)} – {time_zone.words(before.window.end)}"
    if before.unrecorded_until is not None:
        since = time_zone.words(before.unrecorded_until)
        note = f"Recorded only since {since}, so not in all of the period before: {span}."
        return Tile("change", "Change", "no comparison", "", note)
    if found.total is None or before.total is None:
        note = f"The cost of this period is not known, or that of the one before: {span}."
        return Tile("change", "Change", "not known", "", note)
    change, was = Decimal(found.total) - Decimal(before.total), Decimal(before.total)
    part = f" ({change / was:+.0%})" if was > 0 else ""
    note = f"{number(was)} before: {span}"
    difference = round(Decimal(found.total), PLACES) - round(was, PLACES)
    figure = f"{difference:+,.2f} {unit}{part}"
    return Tile("change", "Change", figure, str(change), note, ("Largest changes", changes) if change else None)


def forecast_tile(forecast: CostForecast | str) -> Tile:
    """Return the forecast as a figure, or the text that says why there is none."""
    if isinstance(forecast, str):
        return Tile("forecast", "Forecast", "–", "", forecast)
    amounts, end = forecast.amounts, time_zone.words(forecast.window.end)
    if amounts.total is None or amounts.low is None or amounts.high is None:
        return Tile("forecast", "Forecast", "not known", "", f"{(forecast.unknown or '').removeprefix('unknown: ')}.")
    note = f"{forecast_range(amounts.low, amounts.total, amounts.high, forecast.currency)}. Until {end}."
    if not forecast.is_complete:
        note += " GPU-hours without a price are not included."
    return Tile("forecast", "Forecast", money(Decimal(amounts.total), forecast.currency), amounts.total, note)


def _idle(found: Costs, unit: str) -> Tile:
    idle = idle_total(found)
    if idle is None:
        return Tile("idle", "Idle", "not known", "", _why_not_known(found))
    return Tile("idle", "Idle", f"{number(idle)} {unit}", str(idle), "Not charged to any team.")


def _why_not_known(found: Costs) -> str:
    """Return the reason why the idle cost is not known, with its date where it has one."""
    recorded = found.capacity_recorded_since
    later = [at for at in recorded.values() if at is not None and at > found.window.start]
    if later:
        return f"Capacity is recorded only since {time_zone.words(max(later))}."
    if None in recorded.values():
        return f"The capacity of {', '.join(one for one, at in recorded.items() if at is None)} is not recorded yet."
    if any(row.idle_cost is None and Decimal(row.unpriced_idle_gpu_hours or 0) for row in found.rows):
        return "Some idle GPUs have no price."
    return "A part of this period is not rolled up yet."


def _unpriced(found: Costs) -> Tile:
    hours = Decimal(found.unpriced_gpu_hours)
    note = "Not included in any cost." if hours else "Everything used has a price."
    return Tile("unpriced", "Without a price", f"{number(hours)} GPU-hours", found.unpriced_gpu_hours, note)
