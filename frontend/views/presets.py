"""The requests that operators offer under a name."""

from typing import Any

from django.http import HttpResponse
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_safe

from frontend.admin_forms import PresetForm
from frontend.menu import ADMIN, Item
from frontend.pages import PageRequest, page, show
from frontend.views.tenants import form_page
from portal.core.quotation import named
from portal.tenants import access
from quotas.catalog import selectors as catalog
from quotas.catalog import services
from quotas.catalog.models import Preset


@require_safe
@page
def presets(request: PageRequest) -> HttpResponse:
    """List all presets, hidden ones too, for platform staff."""
    rows = access.for_platform(request.user, catalog.operators_presets())
    context = {"rows": rows, "may_manage": access.can(request.user, services.ACTION, None)}
    return show(request, "frontend/presets.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new(request: PageRequest) -> HttpResponse:
    return _edit(request, services.preset_to_change(request.user), "New preset", "Create preset")


@require_http_methods(["GET", "HEAD", "POST"])
@page
def change(request: PageRequest, preset_id: int) -> HttpResponse:
    row = services.preset_to_change(request.user, preset_id)
    return _edit(request, row, f"Preset {row.name}", "Save")


def _edit(request: PageRequest, row: Preset, title: str, button: str) -> HttpResponse:
    form = PresetForm(request.POST or None, instance=row)

    def save(values: dict[str, Any]) -> str:
        fresh = Preset.objects.get(pk=row.pk) if row.pk else Preset()  # a valid form has changed its own
        return f"Preset {named(services.save_preset(request.user, fresh, form.changes()).name)} saved."

    return form_page(request, form, save, {"title": title, "button": button, "back": reverse("presets")})


urlpatterns = [
    path("presets", presets, name="presets"),
    path("presets/new", new, name="new-preset"),
    path("presets/<int:preset_id>/edit", change, name="edit-preset"),
]
DOCS = "how-to/offer-gpus"
MENU = {"presets": Item(ADMIN, 50, "Presets")}
