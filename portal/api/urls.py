"""The routes of /api, one list. `v1` is the contract; whatever leads nowhere answers a problem too."""

from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from portal.api import me, problems, structure

v1 = [
    path("schema", SpectacularAPIView.as_view(), name="api-schema"),
    path("me", me.me),
    path("tokens", me.tokens),
    path("tokens/<int:token_id>", me.token),
    path("departments", structure.departments),
    path("teams", structure.teams),
    path("projects", structure.projects),
    path("members", structure.members),
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
