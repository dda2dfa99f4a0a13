"""The figures on top of the costs page: this period, change, forecast, idle, and hours without a price."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from allocations.requests.cost_forecast import CostForecast
from frontend import time_zone
from frontend.presenters.costs import idle_total, missing
from quotas.costs.cost_rows import Costs


@dataclass(frozen=True)
class Tile:
    """A figure as it is shown; ``exact`` is the same as REST has it, empty if it is none. ``link`` is a word and the
    address of what makes the figure. ``later`` is the address from which the figure is loaded after the page.
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
    figure = missing(found.rows) if found.total is None else f"{Decimal(found.total):.2f} {unit}"
    return Tile("period", "This period", figure, found.total or "", f"{Decimal(found.gpu_hours):.2f} GPU-hours")


def _change(found: Costs, unit: str, changes: str) -> Tile:
    before = found.previous
    assert before is not None
    span = f"{time_zone.words(before.window.start)} – {time_zone.words(before.window.end)}"
    if found.total is None or before.total is None:
        note = f"The cost of this period is not known, or that of the one before: {span}."
        return Tile("change", "Change", "not known", "", note)
    change, was = Decimal(found.total) - Decimal(before.total), Decimal(before.total)
    part = f" ({change / was:+.0%})" if was > 0 else ""
    note = f"{was:.2f} in the period before: {span}."
    figure = f"{change:+.2f} {unit}{part}"
    return Tile("change", "Change", figure, str(change), note, ("Largest changes", changes) if change else None)


def forecast_tile(forecast: CostForecast | str) -> Tile:
    """Return the forecast as a figure, or the text that says why there is none."""
    if isinstance(forecast, str):
        return Tile("forecast", "Forecast", "–", "", forecast)
    amounts, end = forecast.amounts(), time_zone.words(forecast.window.end)
    if amounts.total is None or amounts.low is None or amounts.high is None:
        return Tile("forecast", "Forecast", "not known", "", f"{(forecast.unknown or '').removeprefix('unknown: ')}.")
    note = f"Until {end}. 80 % range: {Decimal(amounts.low):.2f} to {Decimal(amounts.high):.2f}."
    if not forecast.is_complete:
        note += " GPU-hours without a price are not included."
    return Tile("forecast", "Forecast", f"{Decimal(amounts.total):.2f} {forecast.currency}", amounts.total, note)


def _idle(found: Costs, unit: str) -> Tile:
    idle = idle_total(found)
    if idle is None:
        note = "Some idle GPUs have no price, or part of this period is not recorded or not rolled up yet."
        return Tile("idle", "Idle", "not known", "", note)
    return Tile("idle", "Idle", f"{idle:.2f} {unit}", str(idle), "Not charged to any team.")


def _unpriced(found: Costs) -> Tile:
    hours = Decimal(found.unpriced_gpu_hours)
    note = "These GPU-hours are not included in any cost." if hours else "Everything used has a price."
    return Tile("unpriced", "Without a price", f"{hours:.2f} GPU-hours", found.unpriced_gpu_hours, note)
