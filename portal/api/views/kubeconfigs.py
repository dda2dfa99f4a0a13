"""Access to a cluster without an allocation: kubeconfigs of projects, and the tokens that they ask for."""

from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Annotated

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.connect import person_access
from allocations.connect.person_access import Credential, Format
from portal.api.http.auth import RequestScope, current_user, token_expires_at
from portal.api.http.operations import api_view
from portal.api.http.strict import Body, Text, query_value, read
from portal.api.schemas.outputs import document, output_of
from portal.api.schemas.problem_output import refusals
from portal.core.errors import Invalid

FORMATS = [format_.value for format_ in Format]
NO_STORE = {"Cache-Control": "no-store"}


class CredentialRequest(Body):
    cluster = Text(required=False, max_length=50, help_text="Slug of a cluster. Default: the portal's own.")


@dataclass(frozen=True)
class KubeconfigOut:
    project: Annotated[str, attrgetter("project.slug")]
    namespace: Annotated[str, "What kubectl uses without -n.", attrgetter("project.namespace")]
    cluster: Annotated[str, attrgetter("project.cluster_id")]
    format: Format
    kubeconfig: Annotated[str, "The file, as YAML.", attrgetter("content")]
    expires_at: Annotated[datetime | None, "Of the token in it; null without one."]


@extend_schema(request=CredentialRequest, responses={201: output_of(Credential)})
@api_view(["POST"])
def credentials(request: Request) -> Response:
    """Return a new Kubernetes token of the caller, valid for an hour at most. `gpu-portal credential` hands it to
    kubectl.
    """
    cluster = read(CredentialRequest, request).get("cluster", "")
    made = person_access.credential(current_user(request), cluster, until=token_expires_at(request))
    return Response(document(made), status=201, headers=NO_STORE)


@extend_schema(
    parameters=[OpenApiParameter("format", OpenApiTypes.STR, enum=FORMATS, default=Format.EXEC.value)],
    responses={200: output_of(KubeconfigOut), **refusals("wrong_phase")},
)
@api_view(["GET"])
@permission_classes([RequestScope])
def kubeconfig(request: Request, slug: str) -> Response:
    """Return the caller's kubeconfig for a project. It has no token: kubectl asks `gpu-portal credential` for one, or
    with `format=token` has one in it, valid for an hour at most.
    """
    wanted = query_value(request, "format", Format.EXEC)
    if wanted not in FORMATS:
        raise Invalid({"format": [f"Use one of {', '.join(FORMATS)}."]})
    until = token_expires_at(request)
    made = person_access.kubeconfig(current_user(request), slug, Format(wanted), until=until)
    return Response(document(made, KubeconfigOut), headers=NO_STORE)


urlpatterns = [
    path("credentials", credentials),
    path("projects/<str:slug>/kubeconfig", kubeconfig),
]
