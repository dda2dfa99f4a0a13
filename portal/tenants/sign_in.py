"""What the audit log has of signing in, and the one door for it."""

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache

from portal.audit.entries import audit
from portal.tenants.models import User

NOBODY_KNOWN = "anonymous"


def note(name: str, *, succeeded: bool) -> None:
    """Somebody gave a password for `name`. A name that nobody has is not kept: people type passwords there, too."""
    if succeeded:
        audit(name, "user.sign_in", name)
    else:
        known = User.objects.filter(username=name).exists()
        audit(NOBODY_KNOWN, "user.sign_in_refused", name if known else "a name that nobody has")


@never_cache
def admin_sign_in(request: HttpRequest) -> HttpResponse:
    """Django's admin has a form of its own, without a limit of attempts and unseen by the audit log: so use ours."""
    if request.user.is_authenticated:
        raise PermissionDenied  # signed in, and no operator: the form would send back here
    return redirect_to_login(request.GET.get("next", "/admin/"))
