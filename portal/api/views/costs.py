"""Usage and cost: grouped by any key of the ledger, as CSV, of GPUs and nodes, and of one allocation."""

from collections.abc import Iterator
from uuid import UUID

from django.http import StreamingHttpResponse
from django.urls import path
from django.utils.text import slugify
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import content_negotiation_class
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.requests import selectors
from allocations.requests.costs_at_end import costs_at_end
from portal.api.http import etag, exports, row_pages
from portal.api.http.auth import current_user
from portal.api.http.operations import api_view
from portal.api.http.strict import query_value
from portal.api.schemas import cost_assets, cost_intervals, cost_query, cost_report
from portal.api.schemas.outputs import document, documents
from portal.core import clock
from portal.core.errors import Invalid
from quotas.costs import assets as cards
from quotas.costs import filter_grammar, filters, outages, streamed_costs
from quotas.costs.answers import answer
from quotas.costs.cost_rows import CostRow
from quotas.costs.holder_costs import of_holder
from quotas.costs.questions import Question
from quotas.metering import simulated

LIMIT = OpenApiParameter(
    "limit", OpenApiTypes.INT, default=row_pages.PAGE_SIZE, description=f"Rows, at most {row_pages.MAX_PAGE_SIZE}."
)
EXPORT_FORMATS = ("csv",)
BY = ("gpu", "node")
NOT_ROLLED_UP = "More than 7 days of it are not rolled up. Choose a shorter window, or ask again later."


@extend_schema(
    parameters=[
        *cost_query.PARAMETERS,
        OpenApiParameter("format", OpenApiTypes.STR, enum=["json"], description="As OpenCost. CSV is /costs/export."),
        *(LIMIT, etag.IF_NONE_MATCH),
    ],
    responses={200: cost_report.CostPage, 304: etag.UNCHANGED},
)
@api_view(["GET"])
def costs(request: Request) -> Response:
    """Return usage and cost of everything the caller may see. Amounts are decimal strings. Usage without a price has no
    cost: it is `unpriced_gpu_hours`. What nobody holds is in a row named `__idle__` where the keys are others than
    cluster, flavor and node, but for `idle=share` and `idle=owner`. What has no node is `__unallocated__`.
    """
    if query_value(request, "format", "json") != "json":
        raise Invalid({"format": ["Use json; /costs/export is CSV."]})
    place = row_pages.place_of(request)
    question = cost_query.read(request, place.now)
    found = answer(question)
    page = row_pages.page_of(request, found.rows, place)
    page["results"] = documents(page["results"], CostRow)
    body = document(found, cost_report.CostSums) | {
        "outages": document(outages.share(question), cost_report.OutagesOut),
        "simulated_until": simulated.until(question.window.start),
    }
    tag = etag.of_body(request, page["results"], body)
    return etag.unless_known(request, tag, lambda: Response({**page, **body}))


@extend_schema(
    parameters=[
        *cost_query.PARAMETERS,
        OpenApiParameter("format", OpenApiTypes.STR, enum=EXPORT_FORMATS, default="csv"),
    ],
    responses={(200, "text/csv"): OpenApiTypes.STR},
)
@api_view(["GET"])
@content_negotiation_class(exports.RouteNegotiation)
def export(request: Request) -> StreamingHttpResponse:
    """Stream all rows of /costs as CSV, with a column for each key. No text in it is a spreadsheet formula."""
    if query_value(request, "format", "csv") not in EXPORT_FORMATS:
        raise Invalid({"format": [f"Use one of {', '.join(EXPORT_FORMATS)}."]})
    question = cost_query.read(request, clock.now())
    lines = _lines(streamed_costs.rows(question), question.row_keys)
    return StreamingHttpResponse(lines, content_type=exports.CSV, headers=exports.attachment(_file_name(question)))


def _file_name(question: Question) -> str:
    """Return a name that tells the keys and the days: ``costs-by-project-2026-11-01-to-2026-12-01.csv``."""
    keys, window = "-".join(slugify(key) for key in question.keys), question.window
    return f"costs-by-{keys}-{window.start:%Y-%m-%d}-to-{window.end:%Y-%m-%d}.csv"


@extend_schema(
    parameters=[
        *cost_query.TIMES,
        OpenApiParameter("aggregate", OpenApiTypes.STR, enum=BY, default="gpu"),
        OpenApiParameter("filter", OpenApiTypes.STR, description=f"By {', '.join(cards.KEYS)}."),
        LIMIT,
    ],
    responses=cost_assets.AssetPage,
)
@api_view(["GET"])
def assets(request: Request) -> Response:
    """List GPUs, or nodes, with the parts of their capacity and who held them. For operators and auditors. What a
    device plugin counts is a row for each flavor and resource.
    """
    place = row_pages.place_of(request)
    calendar = cost_query.calendar(request)
    window = cost_query.window(request, place.now, calendar)
    by = query_value(request, "aggregate", "gpu")
    if by not in BY:
        raise Invalid({"aggregate": [f"Use one of {', '.join(BY)}."]})
    where = filter_grammar.parse(query_value(request, "filter"))
    if unknown := sorted(filters.keys(where) - set(cards.KEYS)):
        raise Invalid({"filter": [f"{', '.join(unknown)} cannot be used here. Use {', '.join(cards.KEYS)}."]})
    found = cards.in_window(current_user(request), window, where, by_node=by == "node", now=place.now)
    if found is None:
        raise Invalid({"window": [NOT_ROLLED_UP]})
    page = row_pages.page_of(request, found, place)
    cards.read_uuids(page["results"])
    rows = documents(page["results"], cost_assets.AssetOut)
    return Response({**page, "results": rows, "window": document(window)})


@extend_schema(parameters=[cost_query.TIMEZONE, LIMIT], responses=cost_intervals.IntervalPage)
@api_view(["GET"])
def allocation(request: Request, id_: UUID) -> Response:
    """List what an allocation or a Job held, oldest first: each interval with what it is charged, and with the objects
    that are the evidence of its bounds. Of the sum, also what no pod used.
    """
    place = row_pages.place_of(request)
    user = current_user(request)
    found = of_holder(user, id_, place.now, cost_query.calendar(request))
    if not found.intervals:
        selectors.get(user, id_)
    page = row_pages.page_of(request, found.intervals, place)
    page["results"] = documents(page["results"], cost_intervals.IntervalOut)
    at_end = costs_at_end([one.row for one in found.intervals], place.now).get(id_)
    sums, end = document(found, cost_intervals.IntervalSums), document(at_end, cost_intervals.IntervalEnd)
    return Response({**end, **sums, **page})


def _lines(rows: Iterator[CostRow], keys: list[str]) -> Iterator[str]:
    yield exports.line(["window_start", "window_end", *keys, *cost_report.COLUMNS, "currency"])
    for row in rows:
        bounds = [f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in (row.window.start, row.window.end)]
        names = [exports.cell(row.properties[key]) for key in keys]
        yield exports.line([*bounds, *names, *cost_report.amounts(row), exports.cell(row.currency)])


urlpatterns = [
    path("costs", costs),
    path("costs/export", export),
    path("costs/assets", assets),
    path("costs/allocations/<uuid:id_>", allocation),
]
