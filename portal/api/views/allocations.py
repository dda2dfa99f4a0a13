"""Allocations: preview, request, list, show, connect, extend, retry and release."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.connect.connection import Connection
from allocations.connect.connection import connect as connect_to
from allocations.models import Allocation
from allocations.queues.queue import read_positions
from allocations.requests import bulk_actions, details, selectors, services
from allocations.requests.preview import preview_request
from portal.api.http import etag
from portal.api.http.auth import RequestScope, current_user, token_expires_at
from portal.api.http.idempotency import KEY, idempotent
from portal.api.http.operations import api_view
from portal.api.http.pagination import Orderings, ordering, ordering_parameter, page, page_schema, read_page
from portal.api.http.strict import query_flag, query_time, query_values, read
from portal.api.http.throttling import count_without_effect, releases
from portal.api.schemas import allocation_input, label_filter, preview_output
from portal.api.schemas import allocation_output as out
from portal.api.schemas import bulk_release as bulk
from portal.api.schemas.allocation_input import AllocationBody, EmptyBody, ExtendRequest, ReleaseRequest, to_request
from portal.api.schemas.bulk_release import BulkRelease
from portal.api.schemas.outputs import document, documents, output_of
from portal.api.schemas.problem_output import VIOLATIONS, refusals
from portal.core.errors import Invalid
from portal.core.reading import Batch
from portal.tenants import access
from portal.tenants.models import User

NEWEST_FIRST = "-created_at"
COLUMNS = {
    "project": "project__slug",
    "team": "project__team__slug",
    "phase": "phase",
    "offering": "offering__key",
    "name": "name",
}
ORDERINGS: Orderings = {
    "created_at": ("created_at", "id"),
    "name": ("name", "id"),
    "project": ("project__slug", "id"),
    "offering": ("offering__key", "id"),
}
ID = OpenApiParameter("id_", OpenApiTypes.UUID, OpenApiParameter.PATH)
FILTERS = [
    *(OpenApiParameter(name, OpenApiTypes.STR, description="Several with commas.") for name in COLUMNS),
    label_filter.PARAMETER,
    OpenApiParameter("mine", OpenApiTypes.BOOL, description="Only what the caller requested."),
    OpenApiParameter("created_after", OpenApiTypes.DATETIME, description="Requested after then."),
    ordering_parameter(ORDERINGS, NEWEST_FIRST),
]


@extend_schema(
    request=AllocationBody,
    responses={
        200: output_of(preview_output.PreviewOut),
        **refusals("not_found", "time_invalid", "count_invalid", "never_fits", "wrong_phase"),
    },
)
@api_view(["POST"])
def preview(request: Request) -> Response:
    """Return what a request would get and cost, decided by the same rules as the request. Writes nothing."""
    seen = preview_request(current_user(request), to_request(read(AllocationBody, request)))
    return Response(document(seen, preview_output.PreviewOut))


@extend_schema(
    methods=["POST"],
    summary="Request slices",
    parameters=[KEY],
    request=AllocationBody,
    responses={
        201: output_of(out.AllocationOut),
        **refusals("not_found", "time_invalid", *VIOLATIONS, "name_taken", "wrong_phase"),
    },
)
@extend_schema(
    methods=["GET"],
    parameters=[*FILTERS, etag.IF_NONE_MATCH],
    responses={200: page_schema(output_of(out.AllocationOut)), 304: etag.UNCHANGED},
)
@api_view(["GET", "POST"])
@idempotent(AllocationBody, allocation_input.meaning)
def allocations(request: Request) -> Response:
    """List the allocations that the caller may see, newest first, including ended ones. POST requests slices."""
    if request.method == "GET":
        return _page(request)
    row = services.request(current_user(request), to_request(read(AllocationBody, request)))
    return Response(out.listed(row), status=201, headers={"Location": f"{request.path}/{row.pk}"})


@extend_schema(parameters=[ID], responses=output_of(out.AllocationOut))
@api_view(["GET"])
def allocation(request: Request, id_: str) -> Response:
    """Return one allocation with its queue position, devices, cost to date and objects."""
    return Response(out.one(selectors.get(current_user(request), id_)))


@extend_schema(parameters=[ID], responses=page_schema(output_of(out.EventOut)))
@api_view(["GET"])
def events(request: Request, id_: str) -> Response:
    """List the events of an allocation, oldest first, each with the object that is its evidence."""
    rows = selectors.timeline(selectors.get(current_user(request), id_))
    return page(request, rows, partial(documents, cls=out.EventOut), "id")


@extend_schema(parameters=[ID], responses=output_of(out.ManifestsOut))
@api_view(["GET"])
def manifests(request: Request, id_: str) -> Response:
    """List the objects of the allocation in the cluster, as the portal applies them."""
    found = selectors.manifests(selectors.get(current_user(request), id_))
    return Response({"results": documents(found, out.ManifestOut)})


@extend_schema(parameters=[ID], responses={200: output_of(Connection), **refusals("wrong_phase")})
@api_view(["GET"])
@permission_classes([RequestScope])
def connect(request: Request, id_: str) -> Response:
    """Return how to use the allocation: label, example pod, shell commands, and a personal kubeconfig valid for an
    hour.
    """
    row = selectors.get(current_user(request), id_)
    given = connect_to(current_user(request), row, until=token_expires_at(request))
    return Response(document(given), headers={"Cache-Control": "no-store"})


@extend_schema(parameters=[ID], request=ReleaseRequest, responses=output_of(out.AllocationOut))
@api_view(["POST"])
@releases
def release(request: Request, id_: str) -> Response:
    """Release the slices. Repeating the call changes nothing."""
    reason, row = read(ReleaseRequest, request)["reason"], selectors.get(current_user(request), id_)
    if row.desired == Allocation.Desired.RELEASED:
        count_without_effect(request, is_for_good=True)
    services.release(current_user(request), row, reason)
    return _now(request, id_)


@extend_schema(
    parameters=[ID, KEY],
    request=ExtendRequest,
    responses={200: output_of(out.AllocationOut), **refusals("time_invalid", "wrong_phase")},
)
@api_view(["POST"])
@idempotent(ExtendRequest)
def extend(request: Request, id_: str) -> Response:
    """Extend the allocation by a number of hours: of time held, or of its end if a date was asked."""
    hours = read(ExtendRequest, request)["hours"]
    services.extend(current_user(request), selectors.get(current_user(request), id_), hours)
    return _now(request, id_)


@extend_schema(
    parameters=[ID],
    request=EmptyBody,
    responses={200: output_of(out.AllocationOut), **refusals("wrong_phase")},
)
@api_view(["POST"])
def retry(request: Request, id_: str) -> Response:
    """Queue an allocation again that needs attention, since its start failed three times."""
    read(EmptyBody, request)
    services.retry(current_user(request), selectors.get(current_user(request), id_))
    return _now(request, id_)


@extend_schema(
    operation_id="allocations_release_several", request=BulkRelease, responses=output_of(bulk.BulkReleaseOut)
)
@api_view(["POST"])
@releases
def release_several(request: Request) -> Response:
    """Release allocations by id, or all that match the filters and that the caller may release; `dry_run` only says
    which.

    At most 100 at once, each in a transaction of its own: `problem` says why one was not released. Repeating the call
    changes nothing more.
    """
    values, user = read(BulkRelease, request), current_user(request)
    how: dict[str, Any] = {"reason": values["reason"], "is_dry_run": values["dry_run"]}
    filters = {name: values.get(name, []) for name in bulk.FILTERS}
    rows = _matching(selectors.visible(user), user, filters, is_own=values["mine"])
    named = selectors.with_ids(rows, values.get("ids", []))
    if values["dry_run"] or not bulk_actions.has_effect(user, named if "ids" in values else rows):
        count_without_effect(request)
    found: Sequence[bulk_actions.Release]
    if "ids" in values:
        found, more = bulk_actions.release_named(user, values["ids"], **how), False
    else:
        found, more = bulk_actions.release_matching(user, rows, **how)
    results = documents(found, bulk.ReleasedOut)
    return Response({"dry_run": values["dry_run"], "more": more, "results": results})


def _now(request: Request, id_: str) -> Response:
    return Response(out.listed(selectors.get(current_user(request), id_)))


def _page(request: Request) -> Response:
    """Return a page of the list, or 304 to who has it: its tag is of all that it is made from."""
    found = read_page(request, _filtered(request), *ordering(request, ORDERINGS, NEWEST_FIRST))
    batch = Batch()
    roles, positions = batch.add(access.roles_in_teams(current_user(request))), read_positions(found.rows, batch)
    shown = details.read(found.rows, batch)
    places, versions = positions(), [(row.pk, selectors.version_of(row)) for row in found.rows]
    tag = etag.of_list(
        request, dict(sorted(roles())), versions, shown.version, list(places.items()), found.next, found.previous
    )
    return etag.unless_known(request, tag, lambda: found.response(out.many(shown, places)))


def _filtered(request: Request) -> QuerySet[Allocation]:
    wanted = {name: query_values(request, name) for name in bulk.FILTERS}
    phases = wanted["phase"]
    if unknown := sorted(set(phases) - set(out.PHASES)):
        raise Invalid({"phase": [f"There is no phase {', '.join(unknown)}. Use {', '.join(out.PHASES)}."]})
    user = current_user(request)
    rows = _matching(selectors.listed(user), user, wanted, is_own=query_flag(request, "mine", False))
    if labels := label_filter.labels(request):
        rows = rows.filter(labels__contains=labels.to_json())
    after = query_time(request, "created_after")
    return rows.filter(created_at__gt=after) if after else rows


def _matching(
    rows: QuerySet[Allocation], user: User, filters: Mapping[str, Collection[str]], *, is_own: bool
) -> QuerySet[Allocation]:
    """Return those of the rows that have one of the wanted values in each column."""
    found = {f"{COLUMNS[name]}__in": values for name, values in filters.items() if values}
    rows = rows.filter(**found)
    return rows.filter(requested_by=user) if is_own else rows


urlpatterns = [
    path("allocations", allocations),
    path("allocations/preview", preview),
    path("allocations/release", release_several),
    path("allocations/<str:id_>", allocation),
    path("allocations/<str:id_>/events", events),
    path("allocations/<str:id_>/manifests", manifests),
    path("allocations/<str:id_>/connect", connect),
    path("allocations/<str:id_>/release", release),
    path("allocations/<str:id_>/extend", extend),
    path("allocations/<str:id_>/retry", retry),
]
