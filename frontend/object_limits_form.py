"""The form of a project's object limits: a number for each kind, and the size of ConfigMaps and Secrets."""

from typing import Any

from django import forms

from frontend.base_form import Form
from portal.core.errors import Problem
from portal.tenants.object_limits import CONFIG_KIB, CONFIG_KIB_MAX, OBJECT_KINDS, ObjectKind


def _number(kind: ObjectKind, *, is_adopted: bool) -> forms.IntegerField:
    return forms.IntegerField(
        required=False,
        min_value=kind.minimum,
        max_value=kind.maximum,
        label=kind.title,
        help_text=f"{kind.minimum} to {kind.maximum}; {kind.usual(is_adopted=is_adopted)} if left empty.",
    )


class ObjectLimitsForm(Form):
    """A form in which an empty field is the default."""

    config_size_kib = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=CONFIG_KIB_MAX,
        label="Size of a ConfigMap or Secret, in KiB",
        help_text=f"1 to {CONFIG_KIB_MAX}; {CONFIG_KIB} if left empty.",
    )

    def __init__(self, *args: Any, is_adopted: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        numbers = {name: _number(kind, is_adopted=is_adopted) for name, kind in OBJECT_KINDS.items()}
        self.fields = {**numbers, **self.fields}

    def settings(self) -> dict[str, Any]:
        size_kib = self.cleaned_data["config_size_kib"]
        return {
            "object_limits": {name: self.cleaned_data[name] for name in OBJECT_KINDS},
            "config_size_kib": CONFIG_KIB if size_kib is None else size_kib,
        }

    def add_problem(self, problem: Problem) -> None:
        """Add the errors of a refusal at the kind's own field, and errors about all kinds above the form."""
        for name, messages in problem.errors.items():
            field = name.removeprefix("object_limits.")
            self.add_error(field if field in self.fields else None, messages)
