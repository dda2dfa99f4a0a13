"""A person's own presets of the request form: keeping its request under a name, and removing one."""

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import path
from django.views.decorators.http import require_POST

from frontend.forms import RequestForm
from frontend.pages import PageRequest, page
from frontend.presenters.presets import address_of, query_of
from portal.core.errors import Invalid, Refused
from portal.core.quotation import named
from quotas.catalog import own_presets


@require_POST
@page
def save(request: PageRequest) -> HttpResponse:
    """Keep the request of the form as a preset, and show the form as it was; with its errors, if it has some."""
    values, form = request.POST.copy(), RequestForm([], request.POST)
    if not form.is_valid():
        values["check"] = "1"
        return redirect(address_of(values))
    spec, address = form.spec(), address_of(values)
    values.pop("project", None)
    try:
        preset = own_presets.save(
            request.user, values.get("preset", ""), spec.offering, spec.count, form.chosen_hours(), query_of(values)
        )
    except (Invalid, Refused) as problem:
        found = [message for each in problem.errors.values() for message in each] or [problem.detail, problem.hint]
        messages.error(request, " ".join(found))
    else:
        messages.success(request, f"Preset {named(preset.name)} saved.")
    return redirect(address)


@require_POST
@page
def remove(request: PageRequest, preset_id: int) -> HttpResponse:
    """Remove a preset, and show the form as it was."""
    messages.success(request, f"Preset {named(own_presets.remove(request.user, preset_id).name)} removed.")
    return redirect(address_of(QueryDict(request.POST.get("query", ""))))


urlpatterns = [
    path("request/presets", save, name="save-preset"),
    path("request/presets/<int:preset_id>/remove", remove, name="remove-preset"),
]
DOCS = "how-to/request"
