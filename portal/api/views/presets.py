"""Presets: requests that operators offer under a name."""

from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from operator import attrgetter
from typing import Annotated, Any

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.capacity.fleet import fleet
from allocations.capacity.headroom import Availability
from allocations.domain.allocation_spec import MAX_SLICES
from portal.api.http import edits, etag
from portal.api.http.auth import AdminScope, current_user
from portal.api.http.edits import METHODS, Update, described
from portal.api.http.idempotency import KEY, idempotent
from portal.api.http.operations import api_view
from portal.api.http.pagination import page, page_schema
from portal.api.http.strict import Amount, Body, Boolean, Integer, Text, query_value, read
from portal.api.schemas.outputs import document, documents, output_of
from portal.api.schemas.problem_output import refusals
from portal.core.errors import Invalid, NotVisible
from portal.core.money import DecimalString, plain
from portal.core.quotation import named
from portal.http import own_writes
from portal.tenants import access
from quotas.catalog import selectors as catalog
from quotas.catalog import services
from quotas.catalog.models import Offering, Preset


def _hours(row: Preset) -> str:
    return plain(Decimal(row.hours))


@dataclass(frozen=True)
class PresetOut:
    id: int
    name: str
    count: int
    position: Annotated[int, "Those with a lower number come first."]
    hidden: Annotated[bool, "Not in the list."]
    offering: Annotated[str, "With count and hours, the body of POST /allocations.", attrgetter("offering.key")]
    hours: Annotated[DecimalString, "Decimal.", _hours]


class NewPreset(Body):
    name = Text(max_length=40)
    offering = Text(max_length=127)
    count = Integer(min_value=1, max_value=MAX_SLICES, default=1)
    hours = Amount(required=False, max_digits=8, decimal_places=2, min_value=Decimal("0.01"), help_text="Default: 8.")
    position = Integer(min_value=0, max_value=32767, default=0)
    hidden = Boolean(default=False)


class PresetChange(Update):
    """A preset as GET gives it, or a part of it."""

    shown = output_of(PresetOut)
    name = Text(required=False, max_length=40)
    offering = Text(required=False, max_length=127)
    count = Integer(required=False, min_value=1, max_value=MAX_SLICES)
    hours = Amount(required=False, max_digits=8, decimal_places=2, min_value=Decimal("0.01"))
    position = Integer(required=False, min_value=0, max_value=32767)
    hidden = Boolean(required=False)


@extend_schema(
    methods=["GET"],
    parameters=[
        OpenApiParameter(
            "project", OpenApiTypes.STR, description="Only what its team has quota for, with healthy devices."
        )
    ],
    responses={200: page_schema(output_of(PresetOut)), **refusals("not_found")},
)
@extend_schema(
    methods=["POST"],
    summary="Create a preset",
    parameters=[KEY],
    request=NewPreset,
    responses={201: output_of(PresetOut), **refusals("name_taken", "count_invalid", "time_invalid")},
)
@api_view(["GET", "POST"])
@permission_classes([AdminScope])
@idempotent(NewPreset)
def presets(request: Request) -> Response:
    """List the requests that operators offer under a name, such as Notebook; in the order of the page Request. POST
    creates one (operators).
    """
    user = current_user(request)
    if request.method == "POST":
        return _out(services.save_preset(user, Preset(), _named(read(NewPreset, request))), 201)
    offered = fleet(own_writes.fleet_max_age_s(user.pk))
    shown = offered.offerings()
    if slug := query_value(request, "project"):
        project = access.project_for(user, slug)
        availability = Availability([project.team], user=user, project=project, fleet=offered)
        shown = [
            one for one in shown if offered.capacity(one).total and availability.headroom(project.team, one).max_quota
        ]
    rows = catalog.presets().filter(offering__key__in=[one.key for one in shown])
    return page(request, rows, partial(documents, cls=PresetOut), "position", "name")


@extend_schema(methods=["GET"], responses=output_of(PresetOut))
@described(
    "Change a preset",
    PresetChange,
    {200: output_of(PresetOut), **refusals("name_taken", "count_invalid", "time_invalid")},
)
@api_view(["GET", *METHODS])
@permission_classes([AdminScope])
def preset(request: Request, preset_id: int) -> Response:
    """Return one preset, with its ETag; a hidden one to platform staff alone. PUT and PATCH change it (operators) and
    need If-Match.
    """
    user = current_user(request)
    rows = catalog.presets().filter(offering__in=catalog.offerings())
    if access.sees_all(user):
        rows = catalog.operators_presets()
    row = rows.filter(pk=preset_id).first()
    if row is None:
        raise NotVisible(f"The preset {preset_id}", hint="See the list of presets.")
    if request.method in METHODS:
        changes = _named(edits.changes(PresetChange, request, document(row, PresetOut)))
        row = services.save_preset(user, row, changes, etag.lock(request, _version))
    return _out(row)


def _named(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with the offering that they name. Raises Invalid."""
    if "offering" not in values:
        return values
    found = None if "\x00" in values["offering"] else Offering.objects.filter(key=values["offering"]).first()
    if found is None:
        raise Invalid({"offering": [f"There is no offering {named(values['offering'])}. GET /offerings lists them."]})
    return {**values, "offering": found}


def _version(row: Preset) -> str:
    return etag.version(row.name, row.offering_id, row.count, _hours(row), row.position, row.hidden)


def _out(row: Preset, status: int = 200) -> Response:
    return Response(document(row, PresetOut), status=status, headers={"ETag": etag.entity_tag(_version(row))})


urlpatterns = [
    path("presets", presets),
    path("presets/<int:preset_id>", preset),
]
