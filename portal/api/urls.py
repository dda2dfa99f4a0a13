"""The routes of /api, one list. `v1` is the contract; whatever leads nowhere answers a problem too."""

from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from portal.api import (
    allocations,
    costs,
    flavors,
    lending,
    limits,
    me,
    offerings,
    platform,
    prices,
    problems,
    queues,
    structure,
)

v1 = [
    path("schema", SpectacularAPIView.as_view(), name="api-schema"),
    path("me", me.me),
    path("tokens", me.tokens),
    path("tokens/<int:token_id>", me.token),
    path("departments", structure.departments),
    path("teams", structure.teams),
    path("projects", structure.projects),
    path("members", structure.members),
    path("offerings", offerings.offerings),
    path("offerings/<str:flavor>/<str:slice_>/vocabulary", offerings.vocabulary),
    path("allocations", allocations.allocations),
    path("allocations/preview", allocations.preview),
    path("allocations/<str:id_>", allocations.allocation),
    path("allocations/<str:id_>/events", allocations.events),
    path("allocations/<str:id_>/manifests", allocations.manifests),
    path("allocations/<str:id_>/connect", allocations.connect),
    path("allocations/<str:id_>/release", allocations.release),
    path("allocations/<str:id_>/extend", allocations.extend),
    path("allocations/<str:id_>/retry", allocations.retry),
    path("lending", lending.loans),
    path("limits", limits.limits),
    path("limits/preview", limits.preview),
    path("limits/<int:id_>", limits.limit),
    path("policies/departments/<str:slug>", limits.policy, {"kind": "department"}),
    path("policies/teams/<str:slug>", limits.policy, {"kind": "team"}),
    path("queues/<str:slug>", queues.queue),
    path("costs", costs.costs),
    path("prices", prices.prices),
    path("clusters", platform.clusters),
    path("flavors", flavors.flavors),
    path("flavors/<str:name>", flavors.flavor),
    path("nodes", platform.nodes),
    path("devices", platform.devices),
]
urlpatterns = [
    path("v1/", include(v1)),
    path(
        "docs",
        SpectacularSwaggerSplitView.as_view(url_name="api-schema", template_name="api/docs.html"),
        name="api-docs",
    ),
    re_path(r"^(?P<path>.*)$", problems.unknown_route),
]
