"""Kueue as it is, beside what it should be, for operators and auditors."""

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from allocations.queues import kueue_state
from frontend.pages import PageRequest, page, show
from portal.tenants import access


@require_safe
@page
def kueue(request: PageRequest) -> HttpResponse:
    access.require(request.user, "platform.view", None)
    found = kueue_state.objects()
    wrong = [one for one in found if one.problem or one.differences]
    return show(request, "frontend/kueue.html", {"objects": found, "wrong": len(wrong)})
