"""Every path of the portal."""

from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, URLResolver, include, path, re_path

from portal import health
from portal.api.http import problems
from portal.tenants.sign_in import admin_sign_in
from portal.tenants.sign_in_page import SignInPage

admin.site.site_header = admin.site.site_title = "GPU portal: administration"
handler400 = "portal.api.http.problems.bad_request"
handler500 = "portal.api.http.problems.server_error"
urlpatterns: list[URLPattern | URLResolver] = [
    path("livez", health.livez),
    path("readyz", health.readyz),
    path("metrics", health.metrics),
    path("login", SignInPage.as_view(), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("admin/login/", admin_sign_in),
    path("admin/", admin.site.urls),
    path("api/", include("portal.api.urls")),
    re_path(r"^api(?P<path>\s*)\Z", problems.unknown_route),
    path("", include("frontend.urls")),
]
