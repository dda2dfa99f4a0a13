"""Kueue's objects compared with the desired ones, for operators and auditors."""

from django.http import HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe

from allocations.queues import kueue_state
from frontend.menu import ADMIN, Item
from frontend.pages import PageRequest, page, show


@require_safe
@page
def kueue(request: PageRequest) -> HttpResponse:
    found = kueue_state.objects(request.user)
    wrong = [one for one in found if one.problem or one.differences]
    return show(request, "frontend/kueue.html", {"objects": found, "wrong": len(wrong)})


urlpatterns = [
    path("kueue", kueue, name="kueue"),
]
DOCS = "concepts/lending"
MENU = {"kueue": Item(ADMIN, 60, "Kueue")}
