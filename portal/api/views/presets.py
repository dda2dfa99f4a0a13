"""Presets: requests that operators offer under a name."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.capacity.fleet import fleet
from allocations.capacity.headroom import Availability
from portal.api.http.auth import current_user
from portal.api.http.operations import api_view
from portal.api.http.pagination import page, page_schema
from portal.api.http.strict import query_value
from portal.api.schemas.allocation_output import hours
from portal.api.schemas.problem_output import refusals
from portal.http import own_writes
from portal.tenants import access
from quotas.catalog import selectors as catalog
from quotas.catalog.models import Preset


class PresetOut(serializers.Serializer):
    name = serializers.CharField()
    offering = serializers.CharField(help_text="With count and hours, the body of POST /allocations.")
    count = serializers.IntegerField()
    hours = serializers.CharField(help_text="Decimal.")


@extend_schema(
    parameters=[
        OpenApiParameter(
            "project", OpenApiTypes.STR, description="Only what its team has quota for, with healthy devices."
        )
    ],
    responses={200: page_schema(PresetOut), **refusals("not_found")},
)
@api_view(["GET"])
def presets(request: Request) -> Response:
    """List the requests that operators offer under a name, such as Notebook; in the order of the page Request."""
    user = current_user(request)
    offered = fleet(own_writes.fleet_max_age_s(user.pk))
    shown = offered.offerings()
    if slug := query_value(request, "project"):
        project = access.project_for(user, slug)
        availability = Availability([project.team], user=user, project=project, fleet=offered)
        shown = [
            one for one in shown if offered.capacity(one).total and availability.headroom(project.team, one).max_quota
        ]
    rows = catalog.presets().filter(offering__key__in=[one.key for one in shown])
    return page(request, rows, lambda found: [_document(row) for row in found], "position", "name")


def _document(row: Preset) -> dict[str, Any]:
    return {"name": row.name, "offering": row.offering.key, "count": row.count, "hours": hours(row.hours)}
