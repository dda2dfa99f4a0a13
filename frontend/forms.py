"""Forms that convert input into arguments of services, which validate the rest."""

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django import forms
from django.utils import timezone

from allocations.cluster import names
from allocations.domain.admission import PRIORITIES
from allocations.domain.allocation_spec import (
    CONSTRAINTS,
    INTERVALS,
    LABELLED,
    MAX_SLICES,
    MPS,
    STRATEGIES,
    TIME_SLICING,
    AllocationRequest,
    Constraints,
    Labels,
    Sharing,
)
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.documents import SpecField
from allocations.requests.period import MAX_DURATION
from frontend import claim_form
from frontend.base_form import Form
from portal.tenants.models import Project, Scope

MAX_HOURS = MAX_DURATION.days * 24
MIN_HOURS = Decimal("0.01")
LENGTHS = {"2": "2 hours", "8": "8 hours", "24": "1 day", "72": "3 days", "custom": "Other"}
TOKEN_LIFETIMES = {"7": "7 days", "30": "30 days", "90": "90 days", "365": "1 year"}
MINUTE = "%Y-%m-%dT%H:%M"
"""As browsers send a time."""
NO_OFFERING = "Choose a GPU."
CONSTRAINT_LABELS = {
    "same_gpu": "All on one GPU",
    "same_pcie_root": "All under one PCIe root",
    "same_clique": "All in one NVLink clique",
    "distinct_gpus": "Each on a separate GPU",
}
STRATEGY_LABELS = {"": "No sharing", TIME_SLICING: "Time-slicing", MPS: "MPS"}


def _hours(**options: Any) -> forms.DecimalField:
    return forms.DecimalField(
        min_value=MIN_HOURS,
        max_value=MAX_HOURS,
        max_digits=8,
        decimal_places=2,
        help_text=f"{MIN_HOURS} to {MAX_HOURS}.",
        widget=forms.NumberInput(attrs={"inputmode": "decimal", "autocomplete": "off", "step": "any"}),
        **options,
    )


def _labelled(field: SpecField) -> forms.CharField:
    return forms.CharField(
        required=False,
        label=field.info.label,
        max_length=field.info.max_length,
        help_text=field.info.hint,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class LengthForm(Form):
    """A duration: one of several choices, or hours under "Other"."""

    length = forms.ChoiceField(label="Duration", choices=LENGTHS.items(), initial="8", widget=forms.RadioSelect)
    hours = _hours(required=False, label="Hours")

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if values.get("length") == "custom" and values.get("hours") is None and "hours" not in self.errors:
            self.add_error("hours", "Enter the hours, or choose a duration.")
        return values

    def chosen_hours(self) -> Decimal:
        chosen: str = self.cleaned_data["length"]
        return self.cleaned_data["hours"] if chosen == "custom" else Decimal(chosen)


class RequestForm(LengthForm):
    project = forms.CharField()
    offering = forms.CharField(error_messages={"required": NO_OFFERING}, widget=forms.HiddenInput)
    count = forms.IntegerField(
        label="Slices",
        min_value=1,
        max_value=MAX_SLICES,
        initial=1,
        widget=forms.NumberInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
    )
    name = forms.CharField(
        required=False,
        max_length=names.ALLOCATION_MAX,
        help_text="Lower-case letters, digits and hyphens. Empty: a generated name.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    priority = forms.ChoiceField(
        choices=[(name, name) for name in PRIORITIES],
        initial="normal",
        required=False,
        help_text="Order in the team queue. Critical requires the role lead.",
    )
    spread = forms.BooleanField(
        required=False,
        label="On several nodes",
        help_text="For more slices than one node has. DRA only; each pod then gets one slice. In the API: "
        "<code>constraints.spread</code>.",
    )
    constraints = forms.MultipleChoiceField(
        required=False,
        label="Placement",
        choices=[(name, CONSTRAINT_LABELS[name]) for name in CONSTRAINTS],
        widget=forms.CheckboxSelectMultiple,
        help_text="DRA only. In the API: <code>constraints</code>.",
    )
    strategy = forms.ChoiceField(
        required=False,
        label="Sharing between your pods",
        choices=[(name, STRATEGY_LABELS[name]) for name in ("", *STRATEGIES)],
        help_text="Several of your pods use the same devices. DRA only; the pods are not isolated from each other.",
    )
    interval = forms.ChoiceField(required=False, label="Time slice", choices=[(i, i) for i in ("", *INTERVALS)])
    threads = forms.IntegerField(required=False, label="MPS thread limit (%)", min_value=0, max_value=100)
    pinned = forms.CharField(required=False, label="MPS memory limit", help_text="Such as 10Gi.")
    labels = forms.CharField(
        required=False,
        max_length=4000,
        help_text="Such as app=train, stage=prod: costs are grouped and filtered by them.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    starts_at = forms.DateTimeField(
        required=False,
        label="Start",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format=MINUTE),
    )
    give_up_at = forms.DateTimeField(
        required=False,
        label="Queue timeout",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format=MINUTE),
    )
    key = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, projects: Iterable[Project], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # A select of one's own projects; whether another one may be used is the service's answer, which is 404.
        choices = [(project.slug, f"{project.slug} (team {project.team.slug})") for project in projects]
        self.fields["project"].widget = forms.Select(choices=choices)
        zone = timezone.get_current_timezone_name()
        self.fields["starts_at"].help_text = f"Time zone {zone}. Empty: as soon as possible."
        self.fields[
            "give_up_at"
        ].help_text = f"Time zone {zone}. A request that has no GPUs by then ends. Empty: 7 days."
        self.fields |= {each.name: _labelled(each) for each in LABELLED}

    def clean_labels(self) -> Labels:
        try:
            return Labels.from_text(self.cleaned_data["labels"])
        except ValueError as error:
            raise forms.ValidationError("Write key=value, several with commas, each key once.") from error

    def labelled(self) -> list[forms.BoundField]:
        return [self[each.name] for each in LABELLED]

    def spec(self) -> AllocationRequest:
        values = self.cleaned_data
        is_claim = claim_form.is_claim(values["offering"])
        return AllocationRequest(
            project=values["project"],
            offering=values["offering"],
            count=1 if is_claim else values["count"],
            name=values["name"],
            hours=self.chosen_hours(),
            starts_at=values["starts_at"],
            give_up_at=values["give_up_at"],
            priority=values["priority"] or "normal",
            **{each.name: values[each.name] for each in LABELLED},
            labels=values["labels"],
            constraints=Constraints.named(values["constraints"], spread=values["spread"]),
            sharing=Sharing() if is_claim else self._sharing(),
            claim=CustomClaim(claim_form.document(self.data, self._sharing().to_json())) if is_claim else None,
        )

    def _sharing(self) -> Sharing:
        values = self.cleaned_data
        if not values["strategy"]:
            return Sharing()
        return Sharing(
            strategy=values["strategy"],
            interval=values["interval"] or None,
            active_thread_percentage=values["threads"],
            pinned_memory_limit=values["pinned"] or None,
        )


class ExtendForm(LengthForm):
    pass


class TokenForm(Form):
    name = forms.CharField(max_length=100, help_text="Who uses it, such as a pipeline.")
    scopes = forms.MultipleChoiceField(
        choices=[(scope.value, scope.value) for scope in Scope],
        initial=[Scope.READ.value],
        widget=forms.CheckboxSelectMultiple,
        help_text="A token never allows more than your own role.",
    )
    lives = forms.ChoiceField(choices=TOKEN_LIFETIMES.items(), initial="90", label="Valid for")

    def ttl(self) -> timedelta:
        return timedelta(days=int(self.cleaned_data["lives"]))
