"""Announcements: the banners that everybody sees, and the pages on which operators write them."""

from collections.abc import Collection, Iterator
from typing import Any

from django import forms
from django.http import HttpResponse
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_safe

from frontend.banners import Banner, Source
from frontend.base_form import Form
from frontend.forms import MINUTE
from frontend.menu import ADMIN, Item
from frontend.paged import paged
from frontend.pages import PageRequest, page, show
from frontend.views.tenants import form_page
from portal.core import clock
from portal.core.models import Announcement
from portal.tenants import access
from portal.tenants import announcements as services

PAGE_SIZE = 50
TONES = {Announcement.Severity.INFO: "quiet", Announcement.Severity.WARNING: "warn"}


def _time(label: str, empty: str) -> forms.DateTimeField:
    return forms.DateTimeField(
        required=False,
        label=label,
        input_formats=[MINUTE],
        help_text=f"In your time zone. Empty: {empty}.",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format=MINUTE),
    )


class AnnouncementForm(Form):
    text = forms.CharField(
        max_length=services.MAX_TEXT,
        help_text="One or two sentences, in one line.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    severity = forms.ChoiceField(choices=Announcement.Severity.choices, initial=Announcement.Severity.INFO.value)
    starts_at = _time("From", "at once")
    ends_at = _time("Until", "until you remove it")


@require_safe
@page
def announcements(request: PageRequest) -> HttpResponse:
    """Show all announcements, newest first, to platform staff."""
    context = {
        "found": paged(request, services.all_of(request.user).order_by("-pk"), "page", PAGE_SIZE),
        "now": clock.now(),
        "may_manage": access.can(request.user, services.ACTION, None),
    }
    return show(request, "frontend/announcements.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new(request: PageRequest) -> HttpResponse:
    return _edit(request, services.managed(request.user), "New announcement", "Create announcement")


@require_http_methods(["GET", "HEAD", "POST"])
@page
def change(request: PageRequest, announcement_id: int) -> HttpResponse:
    return _edit(request, services.managed(request.user, announcement_id), "Announcement", "Save")


def _edit(request: PageRequest, row: Announcement, title: str, button: str) -> HttpResponse:
    form = AnnouncementForm(request.POST or None, initial={name: getattr(row, name) for name in services.FIELDS})

    def save(values: dict[str, Any]) -> str:
        services.save(request.user, row, values)
        return "Announcement saved."

    words = {"title": title, "button": button, "back": reverse("announcements")}
    return form_page(request, form, save, words)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def remove(request: PageRequest, announcement_id: int) -> HttpResponse:
    """Ask for confirmation; then delete the announcement."""
    row = services.managed(request.user, announcement_id)

    def delete(values: dict[str, Any]) -> str:
        services.delete(request.user, row)
        return "Announcement removed."

    words = {
        "title": "Remove the announcement?",
        "lead": row.text,
        "button": "Remove",
        "back": reverse("announcements"),
    }
    return form_page(request, Form(request.POST if request.method == "POST" else None), delete, words)


def _banners(rows: Collection[tuple[str, str]]) -> Iterator[Banner]:
    return (Banner(text, TONES[Announcement.Severity(severity)]) for severity, text in rows)


urlpatterns = [
    path("announcements", announcements, name="announcements"),
    path("announcements/new", new, name="new-announcement"),
    path("announcements/<int:announcement_id>/edit", change, name="edit-announcement"),
    path("announcements/<int:announcement_id>/remove", remove, name="remove-announcement"),
]
DOCS = "operate/troubleshoot"
MENU = {"announcements": Item(ADMIN, 80, "Announcements")}
BANNERS = [Source(services.shown_part, _banners)]
