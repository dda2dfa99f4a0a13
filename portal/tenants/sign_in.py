"""Audit entries of sign-ins, and the redirect of Django admin's sign-in page."""

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache

from portal.audit.entries import audit
from portal.tenants.models import User

ANONYMOUS = "anonymous"


def record_attempt(name: str, *, succeeded: bool) -> None:
    """Record a sign-in attempt for `name`. Unknown names are not stored, since people type passwords there too."""
    if succeeded:
        audit(name, "user.sign_in", name)
    else:
        exists = User.objects.filter(username=name).exists()
        audit(ANONYMOUS, "user.sign_in_refused", name if exists else "a name that nobody has")


@never_cache
def admin_sign_in(request: HttpRequest) -> HttpResponse:
    """Redirect Django admin's sign-in form, which has no limit of attempts and no audit entry, to the portal's."""
    if request.user.is_authenticated:
        raise PermissionDenied  # signed in, and no operator: the form would send back here
    return redirect_to_login(request.GET.get("next", "/admin/"))
