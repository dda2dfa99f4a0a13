"""The settings with which the portal runs, read-only, for platform staff. Secrets are not among them."""

from django.conf import settings
from django.http import HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe

from frontend.menu import ADMIN, Item
from frontend.pages import PageRequest, page, show
from portal.core.errors import Forbidden
from portal.tenants import access

NAMES = {
    "Portal": ("PORTAL_URL", "HTTPS", "TRUSTED_PROXIES", "HEARTBEAT_S", "STALE_S", "EVENTS_KEPT_DAYS", "AUDIT_SEAL_S"),
    "Cluster": ("CLUSTER_NAME", "KUBERNETES_PUBLIC_URL", "KUBECONFIG_TTL_S", "PROJECT_STORE_MIB", "ETCD_QUOTA_BYTES"),
    "Allocations": (
        *("DEFAULT_HOURS", "GIVE_UP_AFTER_HOURS", "CHARGE_OVERTIME", "START_DEADLINE_S", "START_BACKOFF_S", "GRACE_S"),
        *("LIVE_PER_MEMBER", "SCHEDULED_PER_MEMBER", "SCHEDULED_PER_PROJECT"),
    ),
    "Reconciliation": ("SWEEP_S", "LEASE_S", "RETRY_FIRST_S", "RETRY_MAX_S", "WORKER_STUCK_S", "FLEET_MAX_AGE_S"),
    "Rate limits": (
        *("API_REQUESTS_PER_MINUTE", "PAGE_REQUESTS_PER_MINUTE", "PROCESSOR_SECONDS_PER_MINUTE"),
        *("LOGINS_PER_MINUTE", "LOGIN_FAILURES_PER_MINUTE", "WRONG_TOKENS_PER_MINUTE", "INVITATION_DAYS"),
    ),
}


@require_safe
@page
def shown(request: PageRequest) -> HttpResponse:
    if not access.sees_all(request.user):
        raise Forbidden("auditor", detail="Operators and auditors can see the settings.")
    groups = {title: {name: getattr(settings, name) for name in names} for title, names in NAMES.items()}
    return show(request, "frontend/settings.html", {"groups": groups})


urlpatterns = [
    path("settings", shown, name="settings"),
]
DOCS = "operate/settings"
MENU = {"settings": Item(ADMIN, 90, "Settings")}
