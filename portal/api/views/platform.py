"""Clusters, nodes, devices and platform roles, for operators and auditors."""

from typing import Any

from django.db.models import QuerySet
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http.auth import current_user
from portal.api.http.operations import api_view
from portal.api.http.pagination import page_schema, serialized_page
from portal.api.schemas.json_object import JsonObject
from portal.clusters.models import Cluster
from portal.tenants import access, members
from portal.tenants.models import User
from quotas.catalog.models import Device, Node


class ClusterOut(serializers.ModelSerializer):
    class Meta:
        model = Cluster
        fields = ("slug", "name")


class NodeOut(serializers.ModelSerializer):
    cluster = serializers.CharField(source="cluster.slug")
    flavor = serializers.CharField(source="flavor.name", allow_null=True, default=None)
    capacity = serializers.DictField(child=serializers.IntegerField(), help_text="Pool → units.")

    class Meta:
        model = Node
        fields = ("name", "cluster", "flavor", "ready", "tainted", "problem", "capacity", "present")


class DeviceOut(serializers.ModelSerializer):
    node = serializers.CharField(source="node.name")
    flavor = serializers.CharField(source="flavor.name")
    attributes = JsonObject(help_text="As the driver publishes them.")

    class Meta:
        model = Device
        fields = ("node", "name", "uuid", "flavor", "healthy", "attributes", "present")


@extend_schema(responses=page_schema(ClusterOut))
@api_view(["GET"])
def clusters(request: Request) -> Response:
    """List the clusters that the portal manages."""
    return _list(request, Cluster.objects.all(), ClusterOut, "slug")


@extend_schema(responses=page_schema(NodeOut))
@api_view(["GET"])
def nodes(request: Request) -> Response:
    """List nodes with GPUs; `problem` says why one is not offered and what to do."""
    return _list(request, Node.objects.select_related("cluster", "flavor"), NodeOut, "name", "id")


@extend_schema(responses=page_schema(DeviceOut))
@api_view(["GET"])
def devices(request: Request) -> Response:
    """List the devices that Kubernetes names, which are those of DRA."""
    return _list(request, Device.objects.select_related("node", "flavor"), DeviceOut, "node__name", "name", "id")


class PlatformRoleOut(serializers.ModelSerializer):
    active = serializers.BooleanField(source="is_active", help_text="An inactive person has no access.")

    class Meta:
        model = User
        fields = ("username", "platform_role", "active")


@extend_schema(responses=page_schema(PlatformRoleOut))
@api_view(["GET"])
def platform_roles(request: Request) -> Response:
    """List the operators and auditors, whose role is for all teams."""
    return _list(request, members.with_platform_role(), PlatformRoleOut, "username")


def _list(request: Request, rows: QuerySet[Any], out: type[serializers.ModelSerializer], *ordering: str) -> Response:
    return serialized_page(request, access.for_platform(current_user(request), rows), out, *ordering)


urlpatterns = [
    path("platform-roles", platform_roles),
    path("clusters", clusters),
    path("nodes", nodes),
    path("devices", devices),
]
