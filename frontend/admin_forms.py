"""Forms of what operators decide: flavors, presets, queue policies and platform roles."""

from collections.abc import Callable
from typing import Any, ClassVar

from django import forms
from django.http import QueryDict

from frontend.base_form import Form, ModelForm
from frontend.tenant_forms import PLAIN
from portal.core.errors import Problem
from portal.tenants.models import Department, PlatformRole, Team
from quotas.catalog import quantities, services
from quotas.catalog.models import Flavor, Preset
from quotas.limits.models import Reclaim, Within
from quotas.limits.projection import Policy

ROLES = [
    (PlatformRole.NONE.value, "None"),
    (PlatformRole.AUDITOR.value, "Auditor: can view everything"),
    (PlatformRole.OPERATOR.value, "Operator: manages the platform"),
]


class QuantityField(forms.CharField):
    """A quantity such as ``23500m`` or ``250Gi``, stored as an integer; empty is None."""

    def __init__(self, *, read: Callable[[str], int], write: Callable[[int], str], **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)
        self._read, self._write = read, write

    def prepare_value(self, value: Any) -> Any:
        return self._write(value) if isinstance(value, int) else value

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        try:
            return self._read(text) if text else None
        except ValueError as error:
            raise forms.ValidationError(f"{error}.") from error


class FlavorForm(ModelForm):
    """What operators decide about a flavor: a proposal may be renamed; an accepted one has a page to undo that."""

    cpu_millicores_per_gpu = QuantityField(
        read=quantities.millicores,
        write=quantities.cpu_text,
        label="CPU per GPU",
        help_text="CPU that goes with a whole GPU, such as 23 or 23500m; empty: an even part of the smallest node.",
    )
    memory_mib_per_gpu = QuantityField(
        read=quantities.mib,
        write=quantities.memory_text,
        label="Memory per GPU",
        help_text="Memory that goes with a whole GPU, such as 250Gi; empty: an even part of the smallest node.",
    )

    gpu_memory_mib = QuantityField(
        read=quantities.mib,
        write=quantities.memory_text,
        label="Memory of a whole GPU",
        help_text="As nvidia-smi prints it, such as 192Gi: from it follows how MIG divides a GPU that no table lists. "
        "It counts for all flavors of this model in the cluster. Empty: as GPU feature discovery labels it.",
    )

    field_order = ("name", "title", "group", "accepted", "hidden")

    class Meta:
        model = Flavor
        fields: ClassVar = ("name", *Flavor.DECIDED)
        labels: ClassVar = {"start_deadline_s": "Start deadline in seconds"}
        widgets: ClassVar = {
            "fail_requests_greater_than_one": forms.Select(
                choices=[("", "NVIDIA’s default (MPS only)"), ("True", "Yes"), ("False", "No")]
            )
        }

    def __init__(self, row: Flavor, data: QueryDict | None = None) -> None:
        super().__init__(data, instance=row)
        if row.accepted:
            del self.fields["name"], self.fields["accepted"]

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        changed = {name: values[name] for name in self.changed_data if name in values}
        for check in (services.check_shares, services.check_gpu_memory):
            try:
                check(self.instance, changed)
            except Problem as problem:
                for field, messages in problem.errors.items():
                    self.add_error(field, messages)
        return values


class PresetForm(ModelForm):
    class Meta:
        model = Preset
        fields = ("name", "offering", "count", "hours", "position", "hidden")


class PolicyForm(Form):
    """How a team or department shares and preempts; of a department the weight alone counts."""

    weight = forms.DecimalField(
        min_value=0, max_digits=9, decimal_places=3, help_text="With twice the weight, twice as much may be borrowed."
    )
    reclaim = forms.ChoiceField(
        choices=[(each, each) for each in Reclaim.values],
        label="Reclaims from other teams",
        help_text="Kueue’s <code>reclaimWithinCohort</code>.",
    )
    within = forms.ChoiceField(
        choices=[(each, each) for each in Within.values],
        label="Preempts within its queue",
        help_text="Kueue’s <code>withinClusterQueue</code>.",
    )

    def __init__(self, holder: Department | Team, policy: Policy, data: QueryDict | None = None) -> None:
        super().__init__(data, initial=vars(policy) | {"weight": f"{policy.weight.normalize():f}"})
        if isinstance(holder, Department):
            del self.fields["reclaim"], self.fields["within"]


class PlatformRoleForm(Form):
    username = forms.CharField(max_length=150, widget=forms.TextInput(attrs=PLAIN))
    platform_role = forms.ChoiceField(choices=ROLES, required=False, label="Platform role")
