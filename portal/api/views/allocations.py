"""Allocations: preview, ask, list, look, use, and give back. Views over services and selectors."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import api_view, permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.connect.connection import connect as connect_to
from allocations.domain.phases import Phase
from allocations.models import Allocation
from allocations.requests import selectors, services
from portal.api.http.auth import RequestScope, person
from portal.api.http.idempotency import idempotent
from portal.api.http.pagination import page, page_of
from portal.api.http.strict import flag, read, words
from portal.api.schemas import allocation_output as out
from portal.api.schemas import preview_output
from portal.api.schemas.allocation_input import AllocationBody, ExtendRequest, Nothing, ReleaseRequest, to_request
from portal.core.errors import Invalid

KEY = OpenApiParameter(
    "Idempotency-Key", OpenApiTypes.STR, OpenApiParameter.HEADER, description="The same key again asks nothing new."
)
FILTERS = [
    OpenApiParameter(name, OpenApiTypes.STR, description="Several with commas.")
    for name in ("project", "team", "phase", "offering", "name")
]


@extend_schema(request=AllocationBody, responses=preview_output.PreviewOut)
@api_view(["POST"])
def preview(request: Request) -> Response:
    """What a request would come to, by the very rules that decide it. Nothing is written."""
    seen = services.preview(person(request), to_request(read(AllocationBody, request)))
    planned = [content for content, _ in selectors.manifests(services.draft(person(request), seen))]
    return Response(preview_output.preview(seen, planned))


@extend_schema(methods=["POST"], parameters=[KEY], request=AllocationBody, responses={201: out.AllocationOut})
@extend_schema(
    methods=["GET"],
    operation_id="allocations_list",
    parameters=[*FILTERS, OpenApiParameter("mine", OpenApiTypes.BOOL), OpenApiParameter("limit", OpenApiTypes.INT)],
    responses=page_of(out.AllocationOut),
)
@api_view(["GET", "POST"])
@idempotent
def allocations(request: Request) -> Response:
    """All that the caller sees, newest first, ended ones too; POST asks for slices."""
    if request.method == "GET":
        return page(request, _filtered(request), out.many, "-created_at", "-id")
    row = services.request(person(request), to_request(read(AllocationBody, request)))
    return Response(out.many([row])[0], status=201, headers={"Location": f"{request.path}/{row.pk}"})


@extend_schema(responses=out.AllocationOut)
@api_view(["GET"])
def allocation(request: Request, id_: str) -> Response:
    """One allocation, with its place in the queue, devices, cost to date and objects."""
    return Response(out.one(selectors.one(person(request), id_)))


@extend_schema(responses=page_of(out.EventOut))
@api_view(["GET"])
def events(request: Request, id_: str) -> Response:
    """Everything that happened to it, oldest first, with the object that shows it."""
    return page(request, selectors.timeline(selectors.one(person(request), id_)), out.events, "id")


@extend_schema(responses=out.ManifestsOut)
@api_view(["GET"])
def manifests(request: Request, id_: str) -> Response:
    """Its own objects on the cluster, as the portal applies them."""
    return Response({"results": out.manifests(selectors.one(person(request), id_))})


@extend_schema(responses=out.ConnectionOut)
@api_view(["GET"])
@permission_classes([RequestScope])
def connect(request: Request, id_: str) -> Response:
    """How to use it: label, a pod that runs as it is, shell lines, and a kubeconfig of one's own for an hour."""
    given = connect_to(person(request), selectors.one(person(request), id_))
    return Response(out.connection(given), headers={"Cache-Control": "no-store"})


@extend_schema(request=ReleaseRequest, responses=out.AllocationOut)
@api_view(["POST"])
def release(request: Request, id_: str) -> Response:
    """Give the slices back; done twice it is done once."""
    reason = read(ReleaseRequest, request)["reason"]
    services.release(person(request), selectors.one(person(request), id_), reason)
    return _now(request, id_)


@extend_schema(parameters=[KEY], request=ExtendRequest, responses=out.AllocationOut)
@api_view(["POST"])
@idempotent
def extend(request: Request, id_: str) -> Response:
    """Let it end so many hours later."""
    hours = read(ExtendRequest, request)["hours"]
    services.extend(person(request), selectors.one(person(request), id_), hours)
    return _now(request, id_)


@extend_schema(request=Nothing, responses=out.AllocationOut)
@api_view(["POST"])
def retry(request: Request, id_: str) -> Response:
    """Let one that asks its owner (no device fitted three times) queue again."""
    read(Nothing, request)
    services.retry(person(request), selectors.one(person(request), id_))
    return _now(request, id_)


def _now(request: Request, id_: str) -> Response:
    return Response(out.many([selectors.one(person(request), id_)])[0])


def _filtered(request: Request) -> QuerySet[Allocation]:
    phases = words(request, "phase")
    if unknown := sorted(set(phases) - {phase.value for phase in Phase}):
        raise Invalid({"phase": [f"There is no phase {', '.join(unknown)}. Use {', '.join(Phase)}."]})
    wanted: dict[str, Any] = {
        "project__slug__in": words(request, "project"),
        "project__team__slug__in": words(request, "team"),
        "offering__key__in": words(request, "offering"),
        "phase__in": phases,
        "name__in": words(request, "name"),
    }
    rows = selectors.visible(person(request)).filter(**{name: values for name, values in wanted.items() if values})
    return rows.filter(requested_by=person(request)) if flag(request, "mine", False) else rows
