"""What all forms have in common: how a field is rendered, and where the errors of a refusal are shown."""

import re
from typing import Any

from django import forms
from django.forms.renderers import DjangoTemplates

from portal.core.errors import Problem

ITEM = re.compile(r"(ies|s)?\[(\d+)\]$")
"""The end of ``requests[0]`` or ``capacities[1]``: the plural, and the place in the list."""
UNNAMED = re.compile(r"\bslice-(\d+)\b")


class Renderer(DjangoTemplates):
    """Renders every field alike: label, help, errors, and the input tied to them."""

    field_template_name = "frontend/field.html"


class PageForm(forms.BaseForm):
    default_renderer = Renderer()  # one for all forms: it keeps the compiled templates
    use_required_attribute = True

    def add_problem(self, problem: Problem) -> None:
        """Add the errors of a refusal, each at its field if the form has it."""
        for name, messages in problem.errors.items():
            known = name in self.fields
            self.add_error(name if known else None, [f"{'' if known else field_label(name)}{m}" for m in messages])
        if not problem.errors:
            self.add_error(None, " ".join(filter(None, [problem.detail, problem.hint])))


class Form(PageForm, forms.Form):
    pass


class ModelForm(PageForm, forms.ModelForm):
    def changes(self) -> dict[str, Any]:
        """Return the valid values that differ from the row's."""
        return {name: self.cleaned_data[name] for name in self.changed_data}


def field_label(field: str) -> str:
    """Return ``Request 1, count: `` for ``claim.requests[0].count``; "" for a field outside the claim."""
    if not field.startswith("claim."):
        return ""
    parts = field.removeprefix("claim.").split(".")
    said = [ITEM.sub(lambda found: f"{'y' if found[1] == 'ies' else ''} {int(found[2]) + 1}", part) for part in parts]
    return f"{', '.join(said).capitalize().replace('_', ' ')}: "


def of_claim(detail: str, hint: str) -> tuple[str, str]:
    """Return both sentences of a refusal in the words of the form, if the first begins with the path of a part of a
    claim; else as they are. Requests have no name of their own on the form.
    """
    path, _, rest = detail.partition(": ")
    if not rest or not (label := field_label(path)):
        return detail, hint
    found = [UNNAMED.sub(lambda one: f"request {int(one[1]) + 1}", words) for words in (f"{label}{rest}", hint)]
    return found[0], found[1]
