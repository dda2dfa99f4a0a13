"""The routes of /api. `v1` is the contract, whose addresses the modules of `views` name; unknown paths are answered
with a problem too.
"""

from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularSwaggerSplitView

from portal.api import views
from portal.api.http import problems
from portal.core.modules import modules_of

v1 = [route for module in modules_of(views) for route in getattr(module, "urlpatterns", ())]
urlpatterns = [
    path("v1/", include(v1)),
    path(
        "docs",
        SpectacularSwaggerSplitView.as_view(url_name="api-schema", template_name="api/docs.html"),
        name="api-docs",
    ),
    re_path(r"^(?P<path>[\s\S]*)$", problems.unknown_route),
]
