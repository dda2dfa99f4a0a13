"""The person's roles, invitations and tokens."""

from datetime import timedelta

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.views.decorators.http import require_http_methods, require_POST

from frontend.forms import TokenForm
from frontend.pages import PageRequest, page, show
from portal.core import clock
from portal.core.errors import Invalid, NotVisible, Refused
from portal.tenants import invitations, services, tokens
from portal.tenants.models import ApiToken, Membership

KEPT_IN_LIST = timedelta(days=30)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def me(request: PageRequest) -> HttpResponse:
    """Show roles and tokens; a new token's secret is only in the answer to the POST."""
    form = TokenForm(request.POST or None)
    secret, status = "", 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            values = form.cleaned_data
            try:
                _, secret = services.issue_token(
                    request.user, request.user, values["name"], values["scopes"], form.ttl()
                )
            except Invalid as problem:
                form.add_problem(problem)
            else:
                form, status = TokenForm(), 201
    return show(request, "frontend/me.html", {"form": form, "secret": secret, **_about(request)}, status=status)


@require_POST
@page
def accept(request: PageRequest, invitation_id: int) -> HttpResponse:
    """Accept an invitation."""
    try:
        made = invitations.accept(request.user, invitation_id)
    except Refused as problem:
        messages.error(request, f"{problem.detail} {problem.hint}")
        return redirect("me")
    messages.success(request, f"You are now {made.role} of {made.team.slug}.")
    return redirect("me")


@require_POST
@page
def decline(request: PageRequest, invitation_id: int) -> HttpResponse:
    """Decline an invitation."""
    invitations.decline(request.user, invitation_id)
    messages.success(request, "Invitation declined.")
    return redirect("me")


@require_http_methods(["GET", "HEAD", "POST"])
@page
def revoke(request: PageRequest, token_id: int) -> HttpResponse:
    """Ask for confirmation; then revoke the token."""
    token = ApiToken.objects.filter(user=request.user, pk=token_id).first()
    if token is None:
        raise NotVisible("The token")
    if request.method == "POST":
        services.revoke_token(request.user, request.user, token_id)
        messages.success(request, f"Token {token.name} revoked.")
        return redirect("me")
    return show(request, "frontend/revoke.html", {"token": token}, partial="question")


def _about(request: PageRequest) -> dict[str, object]:
    now = clock.now()
    rows = ApiToken.objects.filter(user=request.user, expires_at__gt=now - KEPT_IN_LIST)
    return {
        "invitations": invitations.received(request.user),
        "memberships": Membership.objects.filter(user=request.user).select_related("team__department"),
        "tokens": [(row, tokens.state(row, now).value) for row in rows],
    }


urlpatterns = [
    path("me", me, name="me"),
    path("me/tokens/<int:token_id>/revoke", revoke, name="revoke-token"),
    path("me/invitations/<int:invitation_id>/accept", accept, name="accept-invitation"),
    path("me/invitations/<int:invitation_id>/decline", decline, name="decline-invitation"),
]
DOCS = "how-to/tokens"
