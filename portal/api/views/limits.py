"""Limits and queue policies: list, preview, set and remove."""

from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Annotated, Any

from django.db import transaction
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.decorators import permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.domain.documents import FieldInfo
from allocations.limits import services as limit_services
from portal.api.http import edits, etag
from portal.api.http.auth import AdminScope, LeadScope, current_user, require_scope
from portal.api.http.edits import METHODS, Update, described
from portal.api.http.idempotency import KEY, idempotent
from portal.api.http.operations import api_view
from portal.api.http.pagination import page, page_schema
from portal.api.http.strict import Amount, Choice, query_values, read
from portal.api.schemas.limit_fields import QUOTA_HOLDER_KINDS, EffectOut, LimitBody, LimitOut, LimitSpecChange
from portal.api.schemas.outputs import document, documents, output_of
from portal.api.schemas.problem_output import refusals
from portal.core.errors import Invalid
from portal.core.locks import advisory_lock
from portal.core.money import PlainDecimal, plain
from portal.core.quotation import named
from portal.tenants import access
from portal.tenants.models import Department, Membership, Team, User
from portal.tenants.models import Scope as TokenScope
from quotas.catalog.models import Flavor, Offering, Pool
from quotas.limits import selectors, services
from quotas.limits.models import Limit, Reclaim, Within
from quotas.limits.projection import Policy
from quotas.limits.services import Holder, Scope
from quotas.limits.tree import Quota


@extend_schema(
    methods=["GET"],
    parameters=[
        OpenApiParameter(name, OpenApiTypes.STR)
        for name in ("department", "team", "project", "member", "pool", "offering", "flavor")
    ],
    responses=page_schema(output_of(LimitOut)),
)
@extend_schema(
    methods=["POST"],
    summary="Set a limit",
    parameters=[KEY],
    request=LimitBody,
    responses={201: output_of(LimitOut), **refusals("not_found")},
)
@api_view(["GET", "POST"])
@permission_classes([LeadScope])
@idempotent(LimitBody)
def limits(request: Request) -> Response:
    """List the limits the caller may see. POST sets one: operators those of departments and teams, leads those of their
    projects and members.
    """
    user = current_user(request)
    if request.method == "POST":
        body = read(LimitBody, request)
        holder, scope = holder_and_scope(user, body)
        require_holder_scope(request, holder)
        row = limit_services.set_limit(user, holder, scope, quota_of(body))
        return _shown(row, status.HTTP_201_CREATED)
    rows = selectors.visible_limits(user)
    fields = {"member": "user__username", "pool": "pool__key", "offering": "offering__key", "flavor": "flavor__name"}
    for name in ("department", "team", "project", *fields):
        if given := query_values(request, name):
            rows = rows.filter(**{f"{fields.get(name, name + '__slug')}__in": given})
    return page(request, rows, partial(documents, cls=LimitOut), "id")


@extend_schema(request=LimitBody, responses={200: output_of(EffectOut), **refusals("not_found")})
@api_view(["POST"])
@permission_classes([LeadScope])
def preview(request: Request) -> Response:
    """Return what setting this limit would do: the allocations that count against it, and the changes to Kueue's
    objects.
    """
    user = current_user(request)
    body = read(LimitBody, request)
    found = limit_services.effect(user, *holder_and_scope(user, body), quota_of(body))
    return Response(document(found, EffectOut))


@extend_schema(methods=["GET"], responses=output_of(LimitOut))
@described("Change a limit", LimitSpecChange, output_of(LimitOut))
@extend_schema(methods=["DELETE"], summary="Remove a limit", responses={204: None})
@api_view(["GET", *METHODS, "DELETE"])
@permission_classes([LeadScope])
def limit(request: Request, id_: int) -> Response:
    """Return one limit. PUT and PATCH change its amounts and need If-Match. DELETE removes it: of a Kueue quota nothing
    is left, of other limits no bound.
    """
    user = current_user(request)
    row = selectors.visible_limit(user, id_)
    if request.method != "GET":
        require_holder_scope(request, services.holder_and_scope(row)[0])
    if request.method in METHODS:
        with transaction.atomic(), advisory_lock("limits"):
            row = selectors.visible_limit(user, id_)
            etag.require_match(request, version(row))
            shown = document(row, LimitOut)
            quota = quota_of(shown | edits.changes(LimitSpecChange, request, shown))
            row = limit_services.set_limit(user, *services.holder_and_scope(row), quota)
    elif request.method == "DELETE":
        services.remove_limit(user, row)
        return Response(status=status.HTTP_204_NO_CONTENT)
    return _shown(row)


@dataclass(frozen=True)
class PolicyOut:
    holder_kind: Annotated[str, FieldInfo(choices=tuple(QUOTA_HOLDER_KINDS))]
    holder: str
    weight: Annotated[PlainDecimal, "Decimal."]
    reclaim: Annotated[str, FieldInfo(choices=tuple(Reclaim.values))]
    within: Annotated[str, FieldInfo(choices=tuple(Within.values))]


class PolicyBody(Update):
    """A queue policy as GET gives it, or a part of it; omitted fields stay unchanged."""

    shown = output_of(PolicyOut)
    weight = Amount(required=False, max_digits=9, decimal_places=3, min_value=Decimal(0))
    reclaim = Choice(Reclaim.choices, required=False, help_text="Kueue's reclaimWithinCohort.")
    within = Choice(Within.choices, required=False, help_text="Kueue's withinClusterQueue.")


@extend_schema(methods=["GET"], responses=output_of(PolicyOut))
@described("Set a queue policy", PolicyBody, output_of(PolicyOut))
@api_view(["GET", *METHODS])
@permission_classes([AdminScope])
def policy(request: Request, slug: str, kind: str) -> Response:
    """Return the queue policy of a department or team: its fair-sharing weight, and whom it may preempt. PUT and
    PATCH set it and need If-Match.
    """
    user = current_user(request)
    holder = access.department_for(user, slug) if kind == "department" else access.team_for(user, slug)
    if request.method in METHODS:

        def matched(policy: Policy) -> Policy:
            etag.require_match(request, _policy_version(policy))
            return policy

        shown = _policy_document(kind, slug, selectors.policy_of(holder))
        services.set_policy(user, holder, edits.changes(PolicyBody, request, shown), matched)
    agreed = selectors.policy_of(holder)
    headers = {"ETag": etag.entity_tag(_policy_version(agreed))}
    return Response(_policy_document(kind, slug, agreed), headers=headers)


def _policy_document(kind: str, slug: str, agreed: Policy) -> dict[str, Any]:
    return document(PolicyOut(kind, slug, **vars(agreed)))


def _policy_version(agreed: Policy) -> str:
    return f"{plain(agreed.weight)}-{agreed.reclaim}-{agreed.within}"


def version(row: Limit) -> str:
    return f"{row.pk}-{row.nominal}-{row.borrowing}-{row.lending}"


def require_holder_scope(request: Request, holder: Holder) -> None:
    """Raise Forbidden unless the token may change limits of this kind of holder."""
    if isinstance(holder, Department | Team):
        require_scope(request, TokenScope.ADMIN)


def _shown(row: Limit, code: int = status.HTTP_200_OK) -> Response:
    return Response(document(row, LimitOut), status=code, headers={"ETag": etag.entity_tag(version(row))})


def quota_of(body: dict[str, Any]) -> Quota:
    return Quota(body["nominal"], body["borrowing"], body["lending"])


def holder_and_scope(user: User, body: dict[str, Any]) -> tuple[Holder, Scope]:
    """Return the holder and the scope that the body names; raise Invalid if it names none, or two."""
    errors: dict[str, list[str]] = {}
    holders = [name for name in ("department", "team", "project") if name in body]
    if len(holders) != 1:
        errors["team"] = ["Name whose limit it is by one of department, team, project, or team with member."]
    elif "member" in body and holders != ["team"]:
        errors["member"] = ["A member is named together with the team."]
    scopes = [name for name in ("pool", "offering", "flavor") if name in body]
    if len(scopes) > 1:
        errors[scopes[1]] = ["Name one of pool, offering and flavor, or none of them for all GPUs."]
    if errors:
        raise Invalid(errors)
    return _holder(user, body), _scope(body)


def _holder(user: User, body: dict[str, Any]) -> Holder:
    if "department" in body:
        return access.department_for(user, body["department"])
    if "project" in body:
        return access.project_for(user, body["project"])
    team = access.team_for(user, body["team"])
    if "member" not in body:
        return team
    found = Membership.objects.select_related("team", "user").filter(team=team, user__username=body["member"]).first()
    if found is None:
        raise Invalid({"member": [f"{body['member']} is no member of {team.slug}."]})
    return found


def _scope(body: dict[str, Any]) -> Scope:
    found: Scope = None
    if "pool" in body:
        found = Pool.objects.select_related("flavor").filter(key=body["pool"]).first()
    elif "offering" in body:
        found = Offering.objects.select_related("pool", "flavor").filter(key=body["offering"]).first()
    elif "flavor" in body:
        found = Flavor.objects.filter(name=body["flavor"]).first()
    else:
        return None
    if found is None:
        name = next(name for name in ("pool", "offering", "flavor") if name in body)
        raise Invalid({name: [f"There is no {name} {named(str(body[name]))}."]})
    return found


urlpatterns = [
    path("limits", limits),
    path("limits/preview", preview),
    path("limits/<int:id_>", limit),
    path("policies/departments/<str:slug>", policy, {"kind": "department"}),
    path("policies/teams/<str:slug>", policy, {"kind": "team"}),
]
