"""The form of a custom claim: a formset with a row for each request, converted into the claim that the service takes.

The buttons ``more`` and ``fewer`` change the number of rows, with a script or without. Rows are read as they were
typed: the service reports invalid input. A condition's name carries its type, as ``int:numaNode``.
"""

import re
from collections.abc import Mapping
from typing import Any

from django import forms

from allocations.claims.cel import OPERATORS
from allocations.claims.device_schema import DeviceSchema
from allocations.claims.model import CLASSES
from frontend.base_form import Form

MAX_ROWS = 8
CONDITIONS = 2
PREFIX = "row"
DEVICES = {"gpu": "whole GPU", "mig": "MIG slice"}
ONLY = {"gpu": "Whole GPUs only", "mig": "MIG slices only"}
WORDS = {"==": "is", "!=": "is not", ">": "above", ">=": "at least", "<": "below", "<=": "at most", "in": "one of"}
PLAIN = {"autocomplete": "off", "spellcheck": "false"}
Values = Mapping[str, Any]


class TypedField(forms.CharField):
    """Text as it was typed; the initial value where nothing was sent, as in a row that was just added."""

    def __init__(self, *, initial: str = "", widget: forms.Widget | None = None, **options: Any) -> None:
        super().__init__(required=False, initial=initial, widget=widget or forms.TextInput(PLAIN), **options)

    def bound_data(self, data: Any, initial: Any) -> Any:
        return initial if data is None else data


class ConditionForm(Form):
    name = TypedField(label="Attribute")
    operator = TypedField(
        label="Operator", initial="==", widget=forms.Select(choices=[(each, WORDS[each]) for each in OPERATORS])
    )
    value = TypedField(label="Value")


class RowForm(Form):
    """One request, or an alternative to the one before (``instead``)."""

    instead = forms.BooleanField(required=False, label="Alternative to the request before, if that is not available")
    device = TypedField(label="Device", initial="gpu")
    count = TypedField(
        label="How many",
        initial="1",
        help_text="A number, or “all” for all devices of a node.",
        widget=forms.TextInput(PLAIN | {"size": "5"}),
    )
    profile = TypedField(label="MIG profile")
    shares = TypedField(label="Shares per device", widget=forms.TextInput(PLAIN | {"inputmode": "numeric"}))
    tolerate = TypedField(label="Tolerate the device taint", help_text="Key of the taint, such as gpu.nvidia.com/xid.")
    cel = TypedField(
        label="CEL",
        help_text="Used as it is. The API server checks it first.",
        widget=forms.Textarea({"rows": "2", "spellcheck": "false"}),
    )
    admin = forms.BooleanField(required=False, label="Admin access: use devices held by others")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conditions = [ConditionForm(self.data, prefix=self.add_prefix(f"c{index}")) for index in range(CONDITIONS)]

    def set_choices(self, schema: DeviceSchema) -> None:
        """Offer what the devices publish."""
        devices = [(kind, DEVICES[kind]) for kind in CLASSES if kind in schema.devices]
        self.fields["device"].widget = forms.Select(choices=devices)
        profiles = [("", "Any"), *((name, name) for name in schema.profiles)]
        self.fields["profile"].widget = forms.Select(choices=profiles)
        names = [("", "No condition"), *_grouped_names(schema)]
        for condition in self.conditions:
            condition.fields["name"].widget = forms.Select(choices=names)
            condition.fields["value"].widget.attrs["list"] = f"values-{condition.prefix}"


RowFormSet = forms.formset_factory(RowForm, max_num=MAX_ROWS, absolute_max=MAX_ROWS)


def is_claim(offering: str) -> bool:
    return offering.endswith("/claim")


def rows(values: Values) -> "forms.BaseFormSet[RowForm]":
    """Return the rows to show; one empty row at first."""
    sent = RowFormSet(values, prefix=PREFIX).total_form_count()
    total = max(sent, 1) + ("more" in values) - ("fewer" in values)
    management = {f"{PREFIX}-TOTAL_FORMS": max(1, min(total, MAX_ROWS)), f"{PREFIX}-INITIAL_FORMS": 0}
    return RowFormSet(dict(values.items()) | management, prefix=PREFIX)


def is_resized(values: Values) -> bool:
    """Return whether a button changed the number of rows."""
    return "more" in values or "fewer" in values


def document(values: Values, sharing: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claim as the REST API takes it."""
    requests: list[dict[str, Any]] = []
    for row in rows(values):
        is_alternative = bool(requests) and row["instead"].value()
        if is_alternative and "alternatives" not in requests[-1]:
            requests[-1] = {"alternatives": [requests[-1]]}
        (requests[-1]["alternatives"] if is_alternative else requests).append(_choice(row))
    built: dict[str, Any] = {"requests": requests}
    how, _, attribute = values.get("bind", "").partition(":")
    if attribute:
        built["constraints"] = [{"distinct_attribute" if how == "distinct" else "match_attribute": attribute}]
    return built | ({"config": [{"sharing": dict(sharing)}]} if sharing else {})


def _choice(row: RowForm) -> dict[str, Any]:
    typed = _typed(row)
    conditions = [each for each in map(_typed, row.conditions) if each["name"]]
    found: dict[str, Any] = {
        "device": typed["device"],
        "count": _number(typed["count"].strip() or "1"),
        "profile": typed["profile"] if typed["device"] != "gpu" else "",
        "attributes": [_requested(each) for each in conditions if not each["name"].startswith("quantity:")],
        "capacities": [_requested(each) for each in conditions if each["name"].startswith("quantity:")],
        "capacity": {"shares": typed["shares"]} if typed["shares"] else {},
        "tolerations": [{"key": typed["tolerate"], "operator": "Exists"}] if typed["tolerate"] else [],
        "cel": [typed["cel"]] if typed["cel"].strip() else [],
        "admin_access": typed["admin"],
    }
    return {name: value for name, value in found.items() if value or name == "count"}


def _typed(form: Form) -> dict[str, Any]:
    return {field.name: field.value() for field in form}


def _requested(condition: Mapping[str, str]) -> dict[str, Any]:
    type_, _, name = condition["name"].partition(":")
    read = {"int": _number, "bool": _flag}.get(type_, str)
    text = condition["value"].strip()
    value = [read(each.strip()) for each in text.split(",")] if condition["operator"] == "in" else read(text)
    return {"name": name, "operator": condition["operator"], "value": value}


def _number(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text


def _flag(text: str) -> bool | str:
    return {"true": True, "false": False}.get(text.lower(), text)


def context(values: Values, schema: DeviceSchema, *, is_operator: bool) -> dict[str, Any]:
    """Return the context of the template."""
    found = rows(values)
    for row in found:
        row.set_choices(schema)
    if "more" in values:
        found[-1].fields["device"].widget.attrs["autofocus"] = True
    return {
        "rows": found,
        "bind": values.get("bind", ""),
        "profiles": schema.profiles,
        "names": _names(schema),
        "values": [_published(condition, schema) for row in found for condition in row.conditions],
        "shareable": schema.shareable,
        "is_operator": is_operator,
        "has_room": len(found) < MAX_ROWS,
        "is_shortened": "fewer" in values,
    }


def _names(schema: DeviceSchema) -> list[dict[str, Any]]:
    listed = schema.document()
    return [*listed["capacities"], *listed["attributes"]]


def _grouped_names(schema: DeviceSchema) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the attributes and capacities as options, by the kinds of device that publish them."""
    groups: dict[str, list[tuple[str, str]]] = {label: [] for label in ("All devices", *ONLY.values())}
    for each in _names(schema):
        kinds = each["devices"]
        label = ONLY[kinds[0]] if len(kinds) == 1 and len(schema.devices) > 1 else "All devices"
        groups[label].append((f"{each['type']}:{each['name']}", _example(each)))
    return [(label, options) for label, options in groups.items() if options]


def _published(condition: ConditionForm, schema: DeviceSchema) -> dict[str, Any]:
    """Return the values that devices publish of the condition's attribute, as the choices of its value."""
    _, _, name = str(condition["name"].value()).partition(":")
    values: list[Any] = next((each["values"] for each in _names(schema) if each["name"] == name), [])
    return {"id": f"values-{condition.prefix}", "values": [str(each) for each in values]}


def _example(listed: dict[str, Any]) -> str:
    return f"{listed['name']} ({listed['values'][0]}{' …' if len(listed['values']) > 1 else ''})"
