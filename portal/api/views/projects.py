"""Projects: operators create, adopt, move, guard and archive them; leads rename them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.urls import path
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.projects import adopt as project_adopt
from allocations.projects import archive as project_archive
from allocations.projects import editable, organization, transfer
from portal.api.http import edits, etag
from portal.api.http.auth import AdminScope, LeadScope, current_user, require_scope
from portal.api.http.edits import METHODS, Update, described
from portal.api.http.idempotency import KEY, idempotent, stated
from portal.api.http.operations import api_view
from portal.api.http.pagination import page_schema, serialized_page
from portal.api.http.strict import Body, Boolean, Choice, Integer, Table, Text, query_value, read
from portal.api.schemas.allocation_input import EmptyBody
from portal.api.schemas.outputs import document, output_of
from portal.api.schemas.problem_output import refusals
from portal.api.views.structure import SLUG_HELP, TEAM
from portal.core.errors import Invalid
from portal.core.money import Money
from portal.core.quotation import named
from portal.tenants import access, structure
from portal.tenants import object_limits as limits
from portal.tenants.models import Egress, Exposure, Guard, PodSecurity, Project, Scope, Team, User
from portal.tenants.project_options import SETTINGS, ProjectOptions

POD_SECURITY = "Pod Security level: restricted or baseline."
EGRESS = "Where pods may connect to: none, cluster or internet."
EXPOSURE = "From where Services may be reached: cluster, node-port (of every node) or load-balancer (both)."
OBJECT_LIMITS = "Kind → number of objects; a kind left out stays as it is, null is its default."
CONFIG_SIZE = (
    f"How large a ConfigMap or Secret may be, in KiB: 1 to {limits.CONFIG_KIB_MAX}, {limits.CONFIG_KIB} by default."
)
ADMIN_ACCESS = "Whether operators' claims there may look at devices that others hold."


class ProjectOut(serializers.ModelSerializer):
    team = serializers.CharField(source="team.slug")
    department = serializers.CharField(source="team.department.slug")
    object_limits = serializers.SerializerMethodField(help_text="Kind → how many objects of it the project may have.")
    object_store_mib = serializers.SerializerMethodField(
        help_text="The most that these objects can store in etcd: numbers × sizes."
    )
    object_store_limit_mib = serializers.SerializerMethodField(help_text="The limit for that, PROJECT_STORE_MIB.")

    class Meta:
        model = Project
        fields = (
            *("slug", "name", "team", "department", "namespace", "adopted", "guard", *SETTINGS),
            *("object_limits", "config_size_kib", "object_store_mib", "object_store_limit_mib", "archived_at"),
        )

    def get_object_limits(self, row: Project) -> dict[str, int]:
        return limits.numbers(row.object_limits, is_adopted=row.adopted)

    def get_object_store_mib(self, row: Project) -> int:
        return limits.stored_mib(row.object_limits, row.config_size_kib, is_adopted=row.adopted)

    def get_object_store_limit_mib(self, row: Project) -> int:
        return int(settings.PROJECT_STORE_MIB)


class ObjectLimits(Table):
    """Kind → number of objects."""

    child = Integer(allow_null=True)


@extend_schema_field({"type": "integer", "minimum": 1, "maximum": limits.CONFIG_KIB_MAX})
class ConfigSize(Integer):
    """A size whose bounds are described; the service checks them."""


class NewProject(Body):
    slug = Text(max_length=40, help_text=SLUG_HELP)
    name = Text(max_length=100)
    team = Text(max_length=40)
    namespace = Text(required=False, max_length=63, help_text="Default: the slug.")
    adopt = Boolean(default=False, help_text="Whether to adopt an existing namespace. Its guard only warns at first.")
    pod_security = Choice(PodSecurity.choices, default=PodSecurity.RESTRICTED, help_text=POD_SECURITY)
    egress = Choice(Egress.choices, default=Egress.NONE, help_text=EGRESS)
    exposure = Choice(Exposure.choices, default=Exposure.CLUSTER, help_text=EXPOSURE)
    admin_access = Boolean(default=False, help_text=ADMIN_ACCESS)
    object_limits = ObjectLimits(required=False, help_text=OBJECT_LIMITS)
    config_size_kib = ConfigSize(required=False, help_text=CONFIG_SIZE)


class ProjectChange(Update):
    """A project as GET gives it, or a part of it; omitted fields stay unchanged. Leads change the name, operators the
    rest, with scope admin.
    """

    shown = ProjectOut
    name = Text(required=False, max_length=100)
    pod_security = Choice(PodSecurity.choices, required=False, help_text=POD_SECURITY)
    egress = Choice(Egress.choices, required=False, help_text=EGRESS)
    exposure = Choice(Exposure.choices, required=False, help_text=EXPOSURE)
    admin_access = Boolean(required=False, help_text=ADMIN_ACCESS)
    object_limits = ObjectLimits(required=False, help_text=OBJECT_LIMITS)
    config_size_kib = ConfigSize(required=False, help_text=CONFIG_SIZE)


class Move(Body):
    team = Text(max_length=40)


class Archive(Body):
    dry_run = Boolean(default=False, help_text="true: only return what would end.")
    confirm = Text(default="", allow_blank=True, help_text="The project's slug; needed unless dry_run is true.")


class NewGuard(Body):
    guard = Choice(Guard.choices, help_text="audit warns, enforce refuses.")


@dataclass(frozen=True)
class EndingOut:
    id: UUID
    name: str
    offering: str
    slices: Annotated[int, "Of a custom claim its devices."]
    requested_by: str


@dataclass(frozen=True)
class EndsOut:
    project: str
    archived_at: datetime | None
    allocations: Sequence[EndingOut]
    jobs: Annotated[Sequence[str], "Tenants' own queued Jobs."]
    cost_per_hour: Annotated[
        Money | None, "Decimal: what the held allocations cost now; null if none of them has a price."
    ]
    unpriced_allocations: Annotated[int, "Held allocations without a price."]
    currency: str
    namespace: Annotated[Literal["deleted", "kept"], "kept if it was adopted."]
    remaining: Annotated[
        Sequence[str], "What still keeps the namespace of an archived project, as Kubernetes reports it."
    ]
    hint: Annotated[str, "How to free that namespace; empty if nothing keeps it."]


@dataclass(frozen=True)
class UngatedOut:
    pod: str
    why: str


@dataclass(frozen=True)
class GuardOut:
    guard: Annotated[str, partial(serializers.ChoiceField, Guard.choices)]
    would_refuse: Sequence[UngatedOut]


def _meaning(values: dict[str, Any]) -> dict[str, Any]:
    """Return what a checked body means: with the default of its namespace, and without limits that are the default."""
    asked = {"namespace": values["slug"], **stated(values)}
    if asked.get("config_size_kib") == limits.CONFIG_KIB:
        del asked["config_size_kib"]
    numbers, is_adopted = asked.pop("object_limits", {}), values["adopt"]
    changed = {
        name: number for name, number in numbers.items() if not limits.is_default(name, number, is_adopted=is_adopted)
    }
    return {**asked, "object_limits": changed} if changed else asked


@extend_schema(methods=["GET"], parameters=[TEAM], responses=page_schema(ProjectOut))
@extend_schema(
    methods=["POST"],
    summary="Create a project, or adopt a namespace",
    parameters=[KEY],
    request=NewProject,
    responses={201: ProjectOut, **refusals("name_taken")},
)
@api_view(["GET", "POST"])
@permission_classes([AdminScope])
@idempotent(NewProject, _meaning)
def projects(request: Request) -> Response:
    """List the projects the caller may see; `?team=` filters by team. POST creates one, or adopts a namespace
    (operators).
    """
    if request.method == "GET":
        rows = access.visible_projects(current_user(request))
        team = query_value(request, "team")
        return serialized_page(request, rows.filter(team__slug=team) if team else rows, ProjectOut, "slug")
    user, values = current_user(request), read(NewProject, request)
    team, slug, name = (values.pop(key) for key in ("team", "slug", "name"))
    made = organization.create_project(user, _team(user, team), slug, name, ProjectOptions(**values))
    return _out(made, 201)


@extend_schema(methods=["GET"], responses=ProjectOut)
@described("Change a project", ProjectChange, ProjectOut)
@api_view(["GET", *METHODS])
@permission_classes([LeadScope])
def project(request: Request, slug: str) -> Response:
    """Return one project, with its ETag. PUT and PATCH change its name (leads), or its settings
    (operators)."""
    row = access.project_for(current_user(request), slug)
    if request.method in METHODS:
        values = edits.changes(ProjectChange, request, ProjectOut(row).data)
        if values.keys() - {"name"}:
            require_scope(request, Scope.ADMIN)
        row = structure.change_project(current_user(request), row, values, etag.lock(request, _version))
    return _out(row)


@extend_schema(request=Move, responses={200: ProjectOut, **refusals("wrong_phase")})
@api_view(["POST"])
@permission_classes([AdminScope])
def move(request: Request, slug: str) -> Response:
    """Move an empty project to another team (operators). 409 names what still runs in it. Past costs stay with the old
    team.
    """
    user = current_user(request)
    row = editable.project(user, slug)
    transfer.move(user, row, _team(user, read(Move, request)["team"]))
    return _out(row)


@extend_schema(request=Archive, responses=output_of(EndsOut))
@api_view(["POST"])
@permission_classes([AdminScope])
def archive(request: Request, slug: str) -> Response:
    """End everything in the project and archive it (operators), if `confirm` is its slug. `dry_run` only returns what
    would end.
    """
    row, values = editable.project(current_user(request), slug), read(Archive, request)
    if not (is_dry := values["dry_run"]):
        project_archive.require_confirmation(row, values["confirm"])
    ends = project_archive.preview(current_user(request), row)
    if not is_dry:
        project_archive.archive(current_user(request), row)
    return Response(document(ends_of(row, ends)))


@extend_schema(request=EmptyBody, responses={200: ProjectOut, **refusals("wrong_phase")})
@api_view(["POST"])
@permission_classes([AdminScope])
def unarchive(request: Request, slug: str) -> Response:
    """Restore an archived project, empty (operators)."""
    row = access.project_for(current_user(request), slug)
    project_archive.unarchive(current_user(request), row)
    return _out(row)


@extend_schema(methods=["GET"], responses=output_of(GuardOut))
@extend_schema(
    methods=["POST"],
    summary="Set the guard's mode",
    request=NewGuard,
    responses={200: output_of(GuardOut), **refusals("wrong_phase")},
)
@api_view(["GET", "POST"])
@permission_classes([AdminScope])
def guard(request: Request, slug: str) -> Response:
    """Return the guard's mode, and the pods that it would refuse if they were created again. POST sets the mode."""
    row = editable.project(current_user(request), slug)
    with transaction.atomic():
        if request.method == "POST":
            structure.set_guard(current_user(request), row, read(NewGuard, request)["guard"])
        waiting = project_adopt.refused_pods(current_user(request), row)
    return Response(document(GuardOut(row.guard, [UngatedOut(pod.name, pod.why) for pod in waiting])))


def _team(user: User, slug: str) -> Team:
    """Return the team, for operators."""
    rows = editable.teams(user).select_related("department")
    found = rows.filter(slug=slug).first() if "\x00" not in slug else None
    if found is None:
        raise Invalid({"team": [f"There is no team {named(slug)}. GET /teams lists them."]})
    return found


def ends_of(row: Project, ends: project_archive.ArchivePreview) -> EndsOut:
    """Return what archiving the project ends, or would end."""
    remaining = project_archive.remaining([row]).get(row.slug, [])
    return EndsOut(
        project=row.slug,
        archived_at=row.archived_at,
        allocations=[
            EndingOut(found.pk, found.name, found.offering.key, found.slices, found.requested_by.username)
            for found in ends.allocations
        ],
        jobs=ends.jobs,
        cost_per_hour=ends.per_hour,
        unpriced_allocations=ends.unpriced,
        currency=ends.currency,
        namespace="deleted" if ends.deletes_namespace else "kept",
        remaining=remaining,
        hint=f"Remove the finalizers of what remains: {project_archive.removal_command(row)}" if remaining else "",
    )


def _version(row: Project) -> str:
    objects = (json.dumps(row.object_limits, sort_keys=True), row.config_size_kib)
    settings_ = (getattr(row, name) for name in SETTINGS)
    return etag.version(row.name, row.team_id, row.guard, *settings_, *objects)


def _out(row: Project, status: int = 200) -> Response:
    return Response(ProjectOut(row).data, status=status, headers={"ETag": etag.entity_tag(_version(row))})


urlpatterns = [
    path("projects", projects),
    path("projects/<str:slug>", project),
    path("projects/<str:slug>/move", move),
    path("projects/<str:slug>/archive", archive),
    path("projects/<str:slug>/unarchive", unarchive),
    path("projects/<str:slug>/guard", guard),
]
