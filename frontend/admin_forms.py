"""Forms of what operators decide: flavors, presets, queue policies and platform roles."""

from typing import Any, ClassVar

from django import forms

from frontend.base_form import Form, Renderer
from frontend.tenant_forms import PLAIN
from portal.tenants.models import Department, PlatformRole, Team
from quotas.catalog.forms import FlavorForm
from quotas.catalog.models import Flavor, Preset
from quotas.limits.models import Reclaim, Within
from quotas.limits.projection import Policy

ROLES = [
    (PlatformRole.NONE.value, "None"),
    (PlatformRole.AUDITOR.value, "Auditor: can view everything"),
    (PlatformRole.OPERATOR.value, "Operator: manages the platform"),
]


class ModelForm(forms.ModelForm):
    default_renderer = Renderer()
    add_problem = Form.add_problem

    def changes(self) -> dict[str, Any]:
        """Return the valid values that differ from the row's."""
        return {name: self.cleaned_data[name] for name in self.changed_data}


class ConfigureFlavorForm(ModelForm, FlavorForm):
    """What operators decide about a flavor: a proposal may be renamed; an accepted one has a page to undo that."""

    field_order = ("name", "title", "group", "accepted", "hidden")

    class Meta(FlavorForm.Meta):
        labels: ClassVar = {"start_deadline_s": "Start deadline in seconds"}

    def __init__(self, row: Flavor, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, instance=row, **kwargs)
        if row.accepted:
            del self.fields["name"], self.fields["accepted"]


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

    def __init__(self, holder: Department | Team, policy: Policy, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, initial=vars(policy) | {"weight": policy.weight.normalize()}, **kwargs)
        if isinstance(holder, Department):
            del self.fields["reclaim"], self.fields["within"]


class PlatformRoleForm(Form):
    username = forms.CharField(max_length=150, widget=forms.TextInput(attrs=PLAIN))
    platform_role = forms.ChoiceField(choices=ROLES, required=False, label="Platform role")
