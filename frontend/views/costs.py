"""Usage and cost, grouped and filtered as the reader chooses, down to the intervals of an allocation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_safe

from allocations.requests import selectors
from frontend.menu import COSTS, Item
from frontend.pages import PageRequest, page, show
from frontend.presenters import costs as shown
from frontend.presenters import (
    costs_chart,
    costs_drill,
    costs_filters,
    costs_form,
    costs_row_values,
    costs_saved,
    costs_tiles,
)
from frontend.presenters.costs_address import OWN, QUESTION, CostsAddress, address_of, curl
from frontend.presenters.costs_intervals import intervals_page
from frontend.presenters.costs_names import holder_names, key_word
from frontend.presenters.prices import not_priced
from frontend.views.costs_forecast import is_forecast
from portal.core import clock
from portal.core.errors import Forbidden, Invalid
from portal.tenants import access
from portal.tenants.models import User
from quotas.costs import cost_parameters, month_factors, outages
from quotas.costs.answers import answer
from quotas.costs.columns import ALL
from quotas.costs.cost_rows import CostRow, Costs
from quotas.costs.filters import both
from quotas.costs.fleet_costs import Readings
from quotas.costs.holder_costs import of_holder
from quotas.costs.questions import HIDDEN, Metric, Question, asked_by
from quotas.costs.steps import Step

PAGE_ROWS = 50
MAX_TREND_ROWS = PAGE_ROWS
"""Of more rows, those with the highest cost have a series and a trend each."""
RATES = {Metric.CUMULATIVE: "", Metric.HOURLY: " per hour", Metric.DAILY: " per day", Metric.MONTHLY: " per month"}


@dataclass(frozen=True)
class View:
    """A question, its answer, and the rows of the answer by the step of the chart. `series` are their names, from the
    largest; `others` is how many more cost something.
    """

    question: Question
    found: Costs
    step: Step
    by_step: Sequence[CostRow]
    series: list[str]
    others: int = 0


@require_safe
@page
def costs(request: PageRequest) -> HttpResponse:
    """Show usage and cost of all teams the person may see. The address takes any parameter of REST; what the form
    sends is redirected to the address that it means.
    """
    zone = timezone.get_current_timezone_name()
    given = request.GET
    address = address_of(given, zone)
    try:
        if costs_form.is_submitted(given):
            address = CostsAddress({**address.values, **costs_form.choices(given)})
            return redirect(CostsAddress({"timezone": zone, **costs_form.meaning(given)}).page())
        view = _view(request.user, address)
    except (Invalid, Forbidden) as problem:
        messages = [message for found in problem.errors.values() for message in found] or [problem.detail, problem.hint]
        context = _form(request, address) | {"problems": messages, "table": None}
        return show(request, "frontend/costs.html", context, status=problem.status)
    with timezone.override(view.question.calendar.zone):
        return show(request, "frontend/costs.html", _context(request, address, view))


@require_safe
@page
def allocation(request: PageRequest, id_: UUID) -> HttpResponse:
    """Show what an allocation or a Job held: each interval with what it is charged, and its evidence."""
    found = of_holder(request.user, id_, clock.now())
    if not found.intervals:
        selectors.get(request.user, id_)
    context = intervals_page(request.user, id_, found, request.GET.get("page", ""))
    return show(request, "frontend/costs_allocation.html", context)


def _view(user: User, address: CostsAddress) -> View:
    """Return the answers that the page shows. Raises Invalid and Forbidden."""
    now = clock.now()
    costs_form.sort_choice(address.values.get("sort", ""))
    read = cost_parameters.read(address.parameters(), now)
    step = costs_form.step_choice(address.values.get("accumulate", "")) or costs_chart.step_for(read.window)
    if len(replace(read, step=step).edges) > costs_chart.MAX_STEPS + 1:
        raise Invalid({"accumulate": [f"The chart has at most {costs_chart.MAX_STEPS} bars. Choose a longer step."]})
    of_steps = asked_by(user, replace(read, step=step, is_compared=False))
    question = replace(of_steps, step=read.step, is_compared=True)
    readings = Readings(now, month_factors.starts(read.window.start, read.window.end), of_steps.edges)
    found = answer(question, readings)
    largest = found.rows[:MAX_TREND_ROWS]
    series = [row.name for row in largest]
    if len(found.rows) == len(largest):
        return View(question, found, step, answer(of_steps, readings).rows, series)
    whole = answer(replace(of_steps, keys=(ALL,)), readings)
    of_largest = replace(of_steps, where=both(read.where, costs_row_values.of_rows(largest)), idle=HIDDEN)
    by_step = [row for row in answer(of_largest, readings).rows if row.name in {*series}]
    others = sum(Decimal(row.total or row.cost or 0) != 0 for row in found.rows[MAX_TREND_ROWS:])
    return View(question, found, step, costs_chart.with_others(by_step, whole.rows), series, others)


def _context(request: PageRequest, address: CostsAddress, view: View) -> dict[str, Any]:
    user, question, found, now = request.user, view.question, view.found, clock.now()
    where, window, calendar = question.where, question.window, question.calendar
    order, page_number = address.values.get("sort", ""), address.values.get("page")
    by_amount = None if order == "name" else shown.ordered(found, {}, order)
    listed = found.rows if by_amount is None else Paginator(by_amount, PAGE_ROWS).get_page(page_number).object_list
    named = {row.name: row for row in [*listed, *found.rows[:MAX_TREND_ROWS]]}.values()
    names = holder_names(user, named)
    texts = {row.name: names.text(row) for row in named}
    rows = shown.ordered(found, texts, order) if by_amount is None else by_amount
    unit = found.currency + RATES[question.metric]
    starts = costs_chart.step_starts(window, view.step, calendar, now)
    table = shown.table(
        replace(found, rows=rows),
        texts,
        {row.name: costs_drill.row_url(row, where, address, sees_all=question.sees_all) for row in listed},
        costs_chart.trends(view.by_step, starts),
    )
    shows_idle = question.idle_view != HIDDEN
    is_mine, mine = costs_filters.mine(where, address, user.username)
    form = _form(request, address)
    return form | {
        "title": costs_filters.title(
            where, user.username, "" if question.keys == (ALL,) else form["by"], sees_all=question.sees_all
        ),
        "table": table,
        **_pages(table.lines, address),
        "tiles": costs_tiles.tiles(
            found,
            unit,
            changes=address.page(aggregate="allocation", sort="change"),
            forecast=address.forecast() if is_forecast(window, now) else "",
            shows_idle=shows_idle,
        ),
        "chart": costs_chart.chart(
            view.by_step, view.series, texts, window, view.step, calendar, unit, now, view.others
        ),
        "max_trends": MAX_TREND_ROWS if len(found.rows) > MAX_TREND_ROWS else 0,
        "unit": unit,
        "shows_idle": shows_idle,
        "chips": costs_filters.chips(where, address),
        "unfiltered": address.page(filter=""),
        "suggestions": costs_row_values.suggestions(found.rows),
        "unrecorded": costs_tiles.unrecorded(found),
        "is_mine": is_mine,
        "mine": mine,
        "days": costs_form.days(window.start.astimezone(calendar.zone), window.end.astimezone(calendar.zone)),
        "columns": _columns(address),
        "sorted_by": costs_form.SORTS[address.values.get("sort", "")],
        "is_missing": any(row.total is None and row.cost is not None for row in [*found.rows, *view.by_step]),
        "billed": shown.billed_line(found),
        "outages": shown.outage_line(outages.share(question), found.currency),
        "csv": address.rest("/export", compare="previous"),
        "chart_csv": address.rest("/export", accumulate=view.step.value),
        "curl": curl(address.rest(compare="previous")),
    }


def _form(request: PageRequest, address: CostsAddress) -> dict[str, Any]:
    """Return what the page shows of its question, whether or not it can be answered."""
    sees_all = access.sees_all(request.user)
    fields = costs_form.fields(
        address,
        request.GET,
        timezone.localdate(clock.now()),
        sees_all=sees_all,
        default_idle="separate" if sees_all else "hide",
    )
    keys = address.values["aggregate"].split(",")
    saved, has_more_saved = costs_saved.saved_links(request.user)
    return {
        "address": {**dict.fromkeys((*QUESTION, *OWN), ""), **address.values},
        "fields": fields,
        "zones": costs_form.ZONES,
        "by": " and ".join(_lower(key_word(key)) for key in keys if key != ALL),
        "title": "Costs",
        "sees_all": sees_all,
        "days": {"first": "", "last": ""},
        "query": address.saved(),
        "saved": saved,
        "has_more_saved": has_more_saved,
        "share_with": costs_saved.teams_to_share_with(request.user),
        "not_priced": not_priced(clock.now()),
        "may_set": access.can(request.user, "price.manage", None),
    }


def _lower(word: str) -> str:
    """Return a word for the middle of a sentence; a label keeps its letters."""
    return word[:1].lower() + word[1:]


def _pages(lines: Sequence[shown.CostLine], address: CostsAddress) -> dict[str, Any]:
    found = Paginator(lines, PAGE_ROWS).get_page(address.values.get("page"))
    return {
        "lines": found,
        "previous_page": address.page(page=str(found.number - 1)),
        "next_page": address.page(page=str(found.number + 1)),
    }


def _columns(address: CostsAddress) -> dict[str, tuple[str, str]]:
    """Return for each column by which rows can be ordered the address that does, and how it is ordered now."""
    now = address.values.get("sort", "")
    orders = {now: "ascending" if now == "name" else "descending"}
    return {name or "cost": (address.page(sort=name), orders.get(name, "")) for name in costs_form.SORTS}


urlpatterns = [
    path("costs", costs, name="costs"),
    path("costs/allocations/<uuid:id_>", allocation, name="costs-allocation"),
]
DOCS = "how-to/costs"
MENU = {"costs": Item(COSTS, 10, "Costs", is_for_all=True)}
