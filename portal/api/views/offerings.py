"""The catalog: offerings, their free capacity, and what the caller's team can get."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated
from uuid import UUID

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.capacity import device_inventory
from allocations.capacity.fleet import Fleet, fleet
from allocations.capacity.headroom import Availability, TeamHeadroom
from allocations.capacity.snapshot import Capacity
from allocations.domain.documents import FieldInfo
from allocations.domain.isolation import LEVELS
from allocations.requests import forecast, isolation
from portal.api.http.auth import current_user
from portal.api.http.operations import api_view
from portal.api.http.pagination import first_page, page_schema, read_page
from portal.api.http.strict import query_flag, query_value, query_values
from portal.api.schemas.node_share_output import NodeShareOut, node_share
from portal.api.schemas.outputs import documents, output_of
from portal.api.schemas.preview_output import NO_ESTIMATE, WaitOut
from portal.api.schemas.problem_output import refusals
from portal.core import clock
from portal.core.errors import Invalid, NotVisible
from portal.core.money import DecimalString, text
from portal.http import own_writes
from portal.tenants import access
from portal.tenants.models import Team
from quotas.catalog import selectors as catalog
from quotas.catalog.models import Flavor, Kind, Offering, Path, Sharing


@dataclass(frozen=True)
class FlavorBriefOut:
    name: str
    product: str
    architecture: str
    memory_mib: int
    compute_capability: str
    path: Annotated[str, partial(serializers.ChoiceField, Path.choices)]


@dataclass(frozen=True)
class ReleaseOut:
    at: datetime
    allocation: Annotated[UUID | None, "The allocation that ends; null if you may not see it."]


@dataclass(frozen=True)
class MineOut:
    limit: Annotated[int, "The guaranteed quota of the teams."]
    used: int
    can_get_now: int
    can_borrow: Annotated[int, "The part of can_get_now that is borrowed from other teams."]
    max_quota: Annotated[int, "Quota and all that could ever be borrowed."]
    after: Annotated[ReleaseOut | None, "If none is available now: the next known end that frees one."]


@dataclass(frozen=True)
class OfferingOut:
    id: str
    cluster: str
    flavor: FlavorBriefOut
    kind: Annotated[str, partial(serializers.ChoiceField, Kind.choices)]
    profile: Annotated[str, "Empty except for MIG."]
    isolation: Annotated[str, FieldInfo("none: shared, not isolated.", choices=LEVELS)]
    isolation_note: Annotated[str, "Why it is none; otherwise empty."]
    sharing: Annotated[
        str, "Empty where nothing is shared.", partial(serializers.ChoiceField, Sharing.values, allow_blank=True)
    ]
    replicas: Annotated[int, "How many slices share one GPU or MIG instance."]
    one_at_a_time: Annotated[bool, "A request gets one: the device plugin refuses more at once."]
    memory_mib: Annotated[int, "Of one slice; for a shared slice, of what all share. 0: unknown."]
    gpu_share: Annotated[str, "The fraction of a GPU's price that one slice costs, e.g. 1/7."]
    node_share: Annotated[
        NodeShareOut | None,
        "CPU, memory and pods of its node that come with one slice; null until nodes report it, and for a custom "
        "claim, where they depend on its devices.",
    ]
    price_per_hour: Annotated[DecimalString | None, "Decimal, of one slice; null without a price."]
    currency: str
    capacity: Capacity
    mine: MineOut
    wait: WaitOut


@extend_schema(
    parameters=[
        OpenApiParameter("project", OpenApiTypes.STR, description="`mine` is then of its team."),
        OpenApiParameter("kind", OpenApiTypes.STR, enum=Kind.values),
        OpenApiParameter("free", OpenApiTypes.BOOL, description="Only what is available now."),
    ],
    responses={200: page_schema(output_of(OfferingOut)), **refusals("not_found")},
)
@api_view(["GET"])
def offerings(request: Request) -> Response:
    """List the offerings. Counts are in slices of the offering; `mine` is what the caller's teams (or the project's
    team) hold and can get.

    `free=true` returns offerings with free capacity; with `project` too, those that the project's team can get now.
    """
    user = current_user(request)
    slug = query_value(request, "project")
    project = access.project_for(user, slug) if slug else None
    teams = [project.team] if project else access.own_teams(user)
    offered = fleet(own_writes.fleet_max_age_s(user.pk))
    availability = Availability(teams, user=user, project=project, fleet=offered)
    found = offered.offerings()
    if "kind" in request.query_params:
        kinds = query_values(request, "kind")
        if unknown := sorted(set(kinds or [""]) - set(Kind.values)):
            raise Invalid({"kind": [f"There is no kind {', '.join(unknown)}. Use {', '.join(Kind.values)}."]})
        found = [o for o in found if o.kind in kinds]
    if query_flag(request, "free", False):
        found = [
            o for o in found if (_headroom(availability, teams, o).can_get_now if project else offered.capacity(o).free)
        ]
    by_key = {o.key: o for o in found}
    shown = first_page(request, [o for o in offered.index.listed() if o.key in by_key], "key")
    if shown is None:
        shown = read_page(request, Offering.objects.filter(key__in=by_key).only("key"), "key")
    rendered = _render([by_key[o.key] for o in shown.rows], availability, teams, offered)
    return shown.response(documents(rendered, OfferingOut))


class AttributeInfoOut(serializers.Serializer):
    name = serializers.CharField(help_text="Without the domain where it is the driver's own.")
    type = serializers.ChoiceField(["string", "int", "bool", "version", "quantity"])
    values = serializers.ListField(help_text="Examples of values that devices publish now.")
    devices = serializers.ListField(child=serializers.CharField(), help_text="Kinds of device that have it.")


class DeviceSchemaOut(serializers.Serializer):
    devices = serializers.ListField(child=serializers.CharField(), help_text="gpu, mig.")
    profiles = serializers.ListField(child=serializers.CharField())
    attributes = AttributeInfoOut(many=True)
    capacities = AttributeInfoOut(many=True)
    shareable = serializers.BooleanField(help_text="Whether a device can serve several claims, each with a part of it.")


@extend_schema(responses=DeviceSchemaOut)
@api_view(["GET"])
def device_schema(request: Request, flavor: str, slice_: str) -> Response:
    """Return the attributes and capacities that the flavor's devices publish, which a claim can select by."""
    key = f"{flavor}/{slice_}"
    row = None if "\x00" in key else catalog.offerings().filter(key=key, kind=Kind.CLAIM).first()
    if row is None:
        raise NotVisible(
            f"The offering {flavor}/{slice_}", hint="GET /offerings?kind=claim lists those that have a device schema."
        )
    return Response(device_inventory.of_flavor(row.flavor).schema.document())


def _headroom(availability: Availability, teams: Iterable[Team], offering: Offering) -> TeamHeadroom:
    """Return the sum of the teams' headroom; zeros for a caller without a team."""
    sides = [availability.headroom(team, offering) for team in teams]
    return TeamHeadroom(
        limit=sum(side.limit for side in sides),
        used=sum(side.used for side in sides),
        can_get_now=min(sum(side.can_get_now for side in sides), availability.fleet.capacity(offering).free),
        can_borrow=sum(side.can_borrow for side in sides),
        max_quota=sum(side.max_quota for side in sides),
    )


def _earliest_fit(
    availability: Availability,
    teams: Iterable[Team],
    offering: Offering,
    headroom: TeamHeadroom,
    releases: Sequence[forecast.ExpectedRelease],
) -> ReleaseOut | None:
    """Return the first release after which one of the teams can get a slice. The allocation is named only if it belongs
    to these teams.
    """
    if headroom.can_get_now:
        return None
    teams = list(teams)
    found = [one for team in teams if (one := forecast.earliest_fit(availability, team, offering, 1, releases))]
    if not found:
        return None
    first = min(found, key=lambda release: release.at)
    return ReleaseOut(first.at, first.id if first.team in teams else None)


def _render(rows: list[Offering], availability: Availability, teams: list[Team], offered: Fleet) -> list[OfferingOut]:
    prices, currency = offered.prices, offered.currency
    headrooms = {row.key: _headroom(availability, teams, row) for row in rows}
    is_awaited = bool(teams) and any(not headroom.can_get_now for headroom in headrooms.values())
    releases = forecast.expected_releases(clock.now(), availability.index) if is_awaited else []
    return [
        OfferingOut(
            id=row.key,
            cluster=row.flavor.cluster_id,
            flavor=_flavor(row.flavor),
            kind=row.kind,
            profile=row.profile,
            isolation=row.isolation,
            isolation_note=isolation.slice_isolation(row).note,
            sharing=row.sharing,
            replicas=row.replicas,
            one_at_a_time=row.one_at_a_time,
            memory_mib=row.memory_mib,
            gpu_share=str(row.gpu_share),
            node_share=None if row.kind == Kind.CLAIM else node_share(row.node_share),
            price_per_hour=text(prices[row.key]) if row.key in prices else None,
            currency=currency,
            capacity=offered.capacity(row),
            mine=MineOut(
                **vars(headrooms[row.key]),
                after=_earliest_fit(availability, teams, row, headrooms[row.key], releases),
            ),
            wait=NO_ESTIMATE,
        )
        for row in rows
    ]


def _flavor(row: Flavor) -> FlavorBriefOut:
    return FlavorBriefOut(
        name=row.name,
        product=row.product,
        architecture=row.architecture,
        memory_mib=row.memory_mib,
        compute_capability=row.compute_capability,
        path=row.path,
    )


urlpatterns = [
    path("offerings", offerings),
    path("offerings/<str:flavor>/<str:slice_>/device-schema", device_schema),
]
