"""Forms that say what they would change before they change it."""

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from frontend import form_idempotency
from frontend.base_form import Form
from frontend.pages import PageRequest, show
from portal.core.errors import Invalid, Refused
from portal.core.reading import digest_of


class PreviewedForm(Form):
    def digest(self) -> str:
        """Return a digest of the valid values, which tells whether a preview was of them."""
        return digest_of([str(self.cleaned_data[name]) for name in self.fields])


def previewed(
    request: PageRequest,
    form: PreviewedForm,
    effect: Callable[[], object],
    act: Callable[[], str],
    words: Mapping[str, Any],
    template: str = "frontend/price_form.html",
) -> HttpResponse:
    """Show a form, then its ``effect``, then ``act`` and say what that returns. What is applied is what was previewed:
    the button that applies carries the digest of the previewed values, and other values are previewed again.

    ``words``: ``title``, ``lead``, ``button``, and ``back``, the page afterwards.
    """
    context: dict[str, Any] = {"form": form, "effect": None, **words}
    context["key"] = form_idempotency.valid_key(request.POST.get("key", ""))
    if form.is_bound and form.is_valid():
        digest = form.digest()
        try:
            if request.POST.get("confirm") == digest:
                route = f"POST {request.path}"
                said = form_idempotency.act_once(request.user, route, context["key"], digest, act)
                messages.success(request, said)
                return redirect(words["back"])
            context["effect"] = effect()
            context |= {"digest": digest, "is_changed": "confirm" in request.POST}
        except (Invalid, Refused) as problem:
            form.add_problem(problem)
    return show(request, template, context, status=400 if form.errors else 200)
