"""Flavors that discovery proposes and operators accept, rename, hide or group; offerings that operators hide."""

from typing import Any

from django.db.models import QuerySet
from django.urls import path
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.http import edits, etag
from portal.api.http.auth import AdminScope, current_user
from portal.api.http.edits import METHODS, Update, described
from portal.api.http.operations import api_view
from portal.api.http.pagination import page_schema, serialized_page
from portal.api.http.strict import Boolean, Integer, Quantity, Text
from portal.api.schemas.json_object import JsonObject
from portal.api.schemas.node_share_output import NodeShareOut, node_share
from portal.api.schemas.outputs import document, output_of
from portal.api.schemas.problem_output import refusals
from portal.core.errors import Invalid, NotVisible
from portal.core.quotation import named
from portal.tenants import access
from quotas.catalog import quantities, services
from quotas.catalog.models import Flavor, Offering
from quotas.catalog.node_shares import NodeShare

MAX_DEADLINE_S = 86_400
STATES = ["proposed", "offered", "hidden"]
AMOUNTS = {
    "cpu_millicores_per_gpu": "cpu_per_gpu",
    "memory_mib_per_gpu": "memory_per_gpu",
    "gpu_memory_mib": "gpu_memory",
}
"""Fields that a flavor stores as a number, by the name under which REST reads and writes them as a quantity."""


class FlavorOut(serializers.ModelSerializer):
    cluster = serializers.CharField(source="cluster.slug")
    geometry = JsonObject(help_text="How a GPU divides, as its driver says; empty if it does not.")
    node_selector = serializers.DictField(child=serializers.CharField(), help_text="Labels of its nodes.")
    tolerations = serializers.ListField(child=serializers.DictField(child=serializers.CharField()))
    state = serializers.SerializerMethodField()
    cpu_per_gpu = serializers.SerializerMethodField(help_text="As set; null: an even part of the smallest node.")
    memory_per_gpu = serializers.SerializerMethodField(help_text="As set; null: an even part of the smallest node.")
    gpu_memory = serializers.SerializerMethodField(help_text="Of a whole GPU, as set; null: as labelled.")
    node_share = serializers.SerializerMethodField(
        help_text="CPU, memory and pods that come with a whole GPU; null if unknown."
    )
    node_share_max = serializers.SerializerMethodField(
        help_text="The most that can be set: an even part of the smallest node; null if unknown."
    )

    class Meta:
        model = Flavor
        fields = (
            *("name", "cluster", "product", "architecture", "memory_mib", "compute_capability", "path", "strategy"),
            *("partitionable", "geometry", "node_selector", "tolerations", "state"),
            *(name for name in Flavor.DECIDED if name not in AMOUNTS),
            *("cpu_per_gpu", "memory_per_gpu", "gpu_memory", "node_share", "node_share_max"),
        )

    def get_cpu_per_gpu(self, flavor: Flavor) -> str | None:
        decided = flavor.cpu_millicores_per_gpu
        return None if decided is None else quantities.cpu_text(decided)

    def get_memory_per_gpu(self, flavor: Flavor) -> str | None:
        decided = flavor.memory_mib_per_gpu
        return None if decided is None else quantities.memory_text(decided)

    def get_gpu_memory(self, flavor: Flavor) -> str | None:
        return None if flavor.gpu_memory_mib is None else quantities.memory_text(flavor.gpu_memory_mib)

    @extend_schema_field(output_of(NodeShareOut)(allow_null=True))
    def get_node_share(self, flavor: Flavor) -> dict[str, Any] | None:
        return _share(flavor.per_gpu)

    @extend_schema_field(output_of(NodeShareOut)(allow_null=True))
    def get_node_share_max(self, flavor: Flavor) -> dict[str, Any] | None:
        return _share(flavor.most_per_gpu)

    @extend_schema_field(serializers.ChoiceField(STATES))
    def get_state(self, flavor: Flavor) -> str:
        return "proposed" if not flavor.accepted else "hidden" if flavor.hidden else "offered"


def _share(share: NodeShare) -> dict[str, Any] | None:
    found = node_share(share)
    return document(found) if found else None


class FlavorDecision(Update):
    """A flavor as GET gives it, or a part of it; omitted fields stay unchanged. The node shares are ignored, since they
    follow the smallest node.
    """

    shown = FlavorOut
    observed = frozenset({"node_share", "node_share_max"})
    name = Text(required=False, max_length=47, help_text="Of a proposal only: DNS label.")
    accepted = Boolean(
        required=False, help_text="true offers a proposal; false undoes that while nothing refers to it."
    )
    hidden = Boolean(required=False, help_text="A hidden flavor is not offered; allocations of it continue.")
    title = Text(required=False, allow_blank=True, max_length=100, help_text="Shown instead of the product name.")
    group = Text(required=False, allow_blank=True, max_length=63, help_text="Heading in the catalogue.")
    start_deadline_s = Integer(
        required=False, allow_null=True, min_value=1, max_value=MAX_DEADLINE_S, help_text="null: the default."
    )
    fail_requests_greater_than_one = Boolean(
        required=False, allow_null=True, help_text="As the device plugin is set; null: NVIDIA's default (MPS only)."
    )
    cpu_per_gpu = Quantity(
        quantities.millicores,
        source="cpu_millicores_per_gpu",
        required=False,
        allow_null=True,
        help_text="CPU that comes with a whole GPU, such as 23 or 23500m; null: an even part of the smallest node.",
    )
    memory_per_gpu = Quantity(
        quantities.mib,
        source="memory_mib_per_gpu",
        required=False,
        allow_null=True,
        help_text="Memory that comes with a whole GPU, such as 250Gi; null: an even part of the smallest node.",
    )
    gpu_memory = Quantity(
        quantities.mib,
        source="gpu_memory_mib",
        required=False,
        allow_null=True,
        help_text="Memory of a whole GPU, such as 192Gi, from which follows how MIG divides it; null: as labelled.",
    )


@extend_schema(responses=page_schema(FlavorOut))
@api_view(["GET"])
def flavors(request: Request) -> Response:
    """List the flavors that were found: offered, hidden, and proposed. For operators and auditors."""
    return serialized_page(request, _flavors(request), FlavorOut, "name")


@extend_schema(methods=["GET"], responses=FlavorOut)
@described("Decide about a flavor", FlavorDecision, {200: FlavorOut, **refusals("wrong_phase")})
@api_view(["GET", *METHODS])
@permission_classes([AdminScope])
def flavor(request: Request, name: str) -> Response:
    """Return one flavor with its ETag. PUT and PATCH change it (operators) and need If-Match."""
    rows = _flavors(request)
    row = None if "\x00" in name else rows.filter(name=name).first()
    if row is None:
        raise NotVisible(f"The flavor {named(name)}")
    if request.method in METHODS:
        row = _decided(request, row, edits.changes(FlavorDecision, request, FlavorOut(row).data))
    return Response(FlavorOut(row).data, headers={"ETag": etag.entity_tag(_version(row))})


def _flavors(request: Request) -> QuerySet[Flavor]:
    return access.for_platform(current_user(request), Flavor.objects.select_related("cluster"))


def _decided(request: Request, flavor: Flavor, decided: dict[str, Any]) -> Flavor:
    """Return the flavor with the changes; errors name the fields of the body."""
    try:
        return services.configure_flavor(current_user(request), flavor, decided, etag.lock(request, _version))
    except Invalid as error:
        raise Invalid({AMOUNTS.get(name, name): sentences for name, sentences in error.errors.items()}) from error


class OfferingDecidedOut(serializers.Serializer):
    id = serializers.CharField(source="key")
    hidden = serializers.BooleanField()


class OfferingDecision(Update):
    """An offering as GET gives it, or a part of it."""

    shown = OfferingDecidedOut
    hidden = Boolean(required=False, help_text="Not in the catalog; existing allocations continue.")


@extend_schema(methods=["GET"], responses=OfferingDecidedOut)
@described("Hide or show an offering", OfferingDecision, OfferingDecidedOut)
@api_view(["GET", *METHODS])
@permission_classes([AdminScope])
def offering(request: Request, flavor: str, slice_: str) -> Response:
    """Return whether an offering is hidden, with its ETag. PUT and PATCH change it (operators) and need If-Match."""
    user, key = current_user(request), f"{flavor}/{slice_}"
    rows = access.for_platform(user, Offering.objects.all())
    row = None if "\x00" in key else rows.filter(key=key).first()
    if row is None:
        raise NotVisible(f"The offering {named(key)}", hint="GET /offerings lists those that are not hidden.")
    if request.method in METHODS:
        hidden = edits.changes(OfferingDecision, request, OfferingDecidedOut(row).data).get("hidden", row.hidden)
        row = services.hide_offering(user, row, hidden=hidden, lock=etag.lock(request, _offering_version))
    return Response(OfferingDecidedOut(row).data, headers={"ETag": etag.entity_tag(_offering_version(row))})


def _offering_version(offering: Offering) -> str:
    return etag.version(offering.key, offering.hidden)


def _version(flavor: Flavor) -> str:
    return etag.version(flavor.name, *(getattr(flavor, name) for name in Flavor.DECIDED))


urlpatterns = [
    path("offerings/<str:flavor>/<str:slice_>", offering),
    path("flavors", flavors),
    path("flavors/<str:name>", flavor),
]
