"""Access to a cluster without an allocation: kubeconfigs of projects, and the tokens that they ask for."""

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.connect import person_access
from allocations.connect.person_access import Format
from portal.api.http.auth import RequestScope, current_user, token_expires_at
from portal.api.http.operations import api_view
from portal.api.http.strict import Body, Text, query_value, read
from portal.api.schemas.problem_output import refusals
from portal.core.errors import Invalid

FORMATS = [format_.value for format_ in Format]
NO_STORE = {"Cache-Control": "no-store"}


class CredentialRequest(Body):
    cluster = Text(required=False, max_length=50, help_text="Slug of a cluster. Default: the portal's own.")


class CredentialOut(serializers.Serializer):
    cluster = serializers.CharField()
    token = serializers.CharField(help_text="A token of your account there, with your rights in all your projects.")
    expires_at = serializers.DateTimeField()


class KubeconfigOut(serializers.Serializer):
    project = serializers.CharField(source="project.slug")
    namespace = serializers.CharField(source="project.namespace", help_text="What kubectl uses without -n.")
    cluster = serializers.CharField(source="project.cluster_id")
    format = serializers.ChoiceField(FORMATS)
    kubeconfig = serializers.CharField(source="content", help_text="The file, as YAML.")
    expires_at = serializers.DateTimeField(allow_null=True, help_text="Of the token in it; null without one.")


@extend_schema(request=CredentialRequest, responses={201: CredentialOut})
@api_view(["POST"])
def credentials(request: Request) -> Response:
    """Return a new Kubernetes token of the caller, valid for an hour at most. `gpu-portal credential` hands it to
    kubectl.
    """
    cluster = read(CredentialRequest, request).get("cluster", "")
    made = person_access.credential(current_user(request), cluster, until=token_expires_at(request))
    return Response(CredentialOut(made).data, status=201, headers=NO_STORE)


@extend_schema(
    parameters=[OpenApiParameter("format", OpenApiTypes.STR, enum=FORMATS, default=Format.EXEC.value)],
    responses={200: KubeconfigOut, **refusals("wrong_phase")},
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
    return Response(KubeconfigOut(made).data, headers=NO_STORE)


urlpatterns = [
    path("credentials", credentials),
    path("projects/<str:slug>/kubeconfig", kubeconfig),
]
