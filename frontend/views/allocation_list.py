"""The list of allocations: filters, order, columns that a person chooses, and the rows as CSV."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import QuerySet
from django.db.models.functions import Coalesce
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.utils import timezone
from django.utils.text import slugify
from django.views.decorators.http import require_POST, require_safe

from allocations.domain.allocation_spec import Labels
from allocations.domain.phases import DERIVED, Phase
from allocations.models import HAS_ENDED, Allocation
from allocations.requests import selectors
from frontend.allocation_cards import cards_of
from frontend.paged import Paged, paged
from frontend.pages import PageRequest, essential_page, page, show
from frontend.poll_version import unchanged, version
from frontend.presenters import allocation_list as shown_list
from frontend.presenters import phases
from frontend.presenters.allocation_list import Line
from frontend.tables import Sorting, sorting
from frontend.views.theme import safe_address
from portal.clusters.models import Cluster
from portal.core import clock, csv_cells
from portal.core.reading import Batch, Columns
from portal.tenants import access, people
from quotas.catalog.models import Flavor
from quotas.costs.selectors import currency

PAGE_SIZE = 50
MAX_BY_COST = 500
"""How many allocations are sorted by cost: each has to be rated first."""
MAX_OF_CSV = 10_000
LIVE = "live"
NEWEST_FIRST = ("-created_at", "-id")
PHASES = [(LIVE, "Not ended"), *((phase.value, phases.BADGES[phase].word) for phase in DERIVED)]
OF_ROWS = {
    "project": "project__slug",
    "cluster": "project__cluster",
    "model": "offering__flavor__name",
    "person": "requested_by__username__icontains",
}
FILTERS = {**dict.fromkeys(OF_ROWS, ""), "phase": LIVE, "label": "", "mine": ""}
"""Each with its default: what lives, of everybody whom one may see."""


@dataclass(frozen=True)
class Found:
    """The rows that match, and one page of them; ``lines`` are of the page."""

    page: Paged
    lines: Sequence[Line]
    sorting: Sorting


@require_safe
@essential_page
def index(request: PageRequest) -> HttpResponse:
    """List the allocations that the person may see, with the filters and the order of the address: by default those
    that have not ended, the newest first.
    """
    filters = _filters(request)
    rows = _matching(request, filters)
    batch = Batch()
    read = {
        "projects": batch.add(access.project_slugs(request.user)),
        "clusters": batch.add(Columns(Cluster.objects.order_by("slug"), ("slug",))),
        "models": batch.add(Columns(Flavor.objects.filter(accepted=True).order_by("name"), ("name",))),
    }
    found = _found(request, rows, batch)
    current = version([line.card.row for line in found.lines], found.page.of)
    if same := unchanged(request, current):
        return same
    context = {
        "found": found,
        "live": any(line.card.row.phase != Phase.ENDED for line in found.lines),
        "version": current,
        "filters": filters,
        "sort": request.GET.get("sort", ""),
        "is_filtered": filters != FILTERS,
        "is_label_wrong": _labels(filters["label"]) is None,
        "is_incomplete": shown_list.is_incomplete(found.lines),
        "export": urlencode({**filters, "sort": request.GET.get("sort", "")}),
        "phases": PHASES,
        "choices": shown_list.choices(found.sorting.columns),
        **{name: [(value, value) for (value,) in rows_of()] for name, rows_of in read.items()},
    }
    return show(request, "frontend/allocations.html", context, partial="rows")


@require_safe
@page
def export(request: PageRequest) -> HttpResponse:
    """Return the rows of the list, all pages of them, as CSV with the chosen columns; of very many the first, which the
    name of the file then says.
    """
    filters = _filters(request)
    order = _sorting(request)
    if order.column and order.column.name in shown_list.OF_CARDS:
        order = replace(order, column=None)
    rows = order.query(_matching(request, filters), *NEWEST_FIRST)
    name = _file_name(filters, rows.count())
    return HttpResponse(
        _csv(request, rows, order),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
    )


@require_POST
@page
def choose_columns(request: PageRequest) -> HttpResponse:
    """Keep the columns that the person chose, and show the list again as it was."""
    chosen = request.POST.getlist("column")
    people.keep_columns(request.user, "allocations", [one.name for one in shown_list.CHOICES if one.name in chosen])
    messages.success(request, "Columns saved.")
    return redirect(safe_address(request, request.POST.get("next", "")))


def _filters(request: PageRequest) -> dict[str, str]:
    return {name: request.GET.get(name, default).replace("\x00", "") for name, default in FILTERS.items()}


def _matching(request: PageRequest, filters: dict[str, str]) -> QuerySet[Allocation]:
    rows = selectors.listed(request.user).annotate(until=Coalesce("ended_at", "ends_at"))
    rows = rows.filter(**{column: filters[name] for name, column in OF_ROWS.items() if filters[name]})
    if filters["phase"] == LIVE:
        rows = rows.filter(ended_at=None)
    elif filters["phase"]:
        rows = rows.filter(phase=filters["phase"])
    if filters["label"]:
        labels = _labels(filters["label"])
        rows = rows.none() if labels is None else rows.filter(labels__contains=labels.to_json())
    return rows.filter(requested_by=request.user) if filters["mine"] else rows


def _found(request: PageRequest, rows: QuerySet[Allocation], batch: Batch) -> Found:
    """Return the page of the address. By cost few rows are sorted, all of them rated; else the page alone is."""
    order, newest_first = _sorting(request), (HAS_ENDED, *NEWEST_FIRST)
    if order.column and order.column.name in shown_list.OF_CARDS:
        rated = list(rows.order_by(*newest_first)[: MAX_BY_COST + 1])
        if len(rated) <= MAX_BY_COST:
            lines = shown_list.lines(cards_of(request.user, rated, batch), order.columns)
            found = paged(request, order.rows(lines), "page", PAGE_SIZE)
            return Found(found, list(found), order)
        order = replace(order, column=None)
    found = paged(request, order.query(rows, *newest_first), "page", PAGE_SIZE)
    return Found(found, shown_list.lines(cards_of(request.user, list(found), batch), order.columns), order)


def _sorting(request: PageRequest) -> Sorting:
    return sorting(request, shown_list.columns(request.user.columns.get("allocations"), currency()))


def _csv(request: PageRequest, rows: QuerySet[Allocation], order: Sorting) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["id", *(column.name for column in order.columns)])
    for start in range(0, MAX_OF_CSV, MAX_BY_COST):
        some = list(rows[start : start + MAX_BY_COST])
        for card in cards_of(request.user, some):
            values = [card.id, *shown_list.csv_row(card, order.columns)]
            writer.writerow([csv_cells.escaped(value) for value in values])
        if len(some) < MAX_BY_COST:
            break
    return out.getvalue()


def _file_name(filters: dict[str, str], count: int) -> str:
    """Return a name that tells what is in the file: ``allocations-not-ended-vision-2026-11-28.csv``."""
    phase = {**dict(PHASES), "": "all"}.get(filters["phase"], filters["phase"])
    others = [value for name, value in filters.items() if value and name not in ("phase", "mine")]
    words = [phase, *(["mine"] if filters["mine"] else []), *others]
    words += [f"first {MAX_OF_CSV}"] if count > MAX_OF_CSV else []
    return f"allocations-{slugify(' '.join(words))[:100]}-{timezone.localdate(clock.now()):%Y-%m-%d}.csv"


def _labels(text: str) -> Labels | None:
    """Return the labels that the filter names; None if it cannot be read."""
    try:
        return Labels.from_text(text)
    except ValueError:
        return None


urlpatterns = [
    path("allocations", index, name="allocations"),
    path("allocations/csv", export, name="allocations-csv"),
    path("allocations/columns", choose_columns, name="allocations-columns"),
]
DOCS = "how-to/extend-and-release"
