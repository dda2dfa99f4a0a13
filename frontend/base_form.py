"""What all forms have in common: how a field is rendered, and where the errors of a refusal are shown."""

import re

from django import forms
from django.forms.renderers import DjangoTemplates

from portal.core.errors import Problem


class Renderer(DjangoTemplates):
    """Renders every field alike: label, help, errors, and the input tied to them."""

    field_template_name = "frontend/field.html"


class Form(forms.Form):
    default_renderer = Renderer
    use_required_attribute = True

    def add_problem(self, problem: Problem) -> None:
        """Add the errors of a refusal, each at its field if the form has it."""
        for name, messages in problem.errors.items():
            known = name in self.fields
            self.add_error(name if known else None, [f"{'' if known else field_label(name)}{m}" for m in messages])
        if not problem.errors:
            self.add_error(None, " ".join(filter(None, [problem.detail, problem.hint])))


def field_label(field: str) -> str:
    """Return ``Request 1, count: `` for ``claim.requests[0].count``; "" for a field outside the claim."""
    if not field.startswith("claim."):
        return ""
    parts = field.removeprefix("claim.").split(".")
    said = [re.sub(r"\[(\d+)\]$", lambda match: f" {int(match[1]) + 1}", part) for part in parts]
    said[0] = re.sub(r"^requests (\d+)$", r"request \1", said[0])
    return f"{', '.join(said).capitalize()}: "
