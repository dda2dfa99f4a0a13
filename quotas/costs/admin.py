from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import HttpRequest

from portal.core import clock
from portal.core.admin import ReadOnlyAdmin
from portal.core.errors import Problem
from quotas.costs import capacity_services, services
from quotas.costs.capacity_services import WEIGHTS, CostSubject
from quotas.costs.models import (
    Bill,
    CapacityCostDay,
    CapacityCostHour,
    CapacityCostMonth,
    NodeCost,
    NodeInterval,
    NodeTerm,
    Price,
    SavedView,
    SharedCost,
)
from quotas.costs.node_split import Weights
from quotas.costs.node_terms import Term

TO_FILL_IN_THE_FORM = timedelta(minutes=10)


class CheckedForm(forms.ModelForm):
    """Validates like the service, with errors beside the fields."""

    def check_values(self, values: dict[str, Any]) -> None:
        """Raise Problem if the service would refuse these values."""
        raise NotImplementedError

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if not self.errors:
            try:
                self.check_values(values)
            except Problem as problem:
                errors = problem.errors or {NON_FIELD_ERRORS: [f"{problem.detail} {problem.hint}"]}
                for field, messages in errors.items():
                    self.add_error(field if field in self.fields else None, messages)
        return values


class DatedAdmin(admin.ModelAdmin):
    """Rows that begin at a time: they are added, and never changed or deleted."""

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"valid_from": clock.now() + TO_FILL_IN_THE_FORM}

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


class PriceForm(CheckedForm):
    def check_values(self, values: dict[str, Any]) -> None:
        begins: datetime = values["valid_from"]
        if offering := values["offering"]:
            services.check_slice_price(offering, values["per_slice_hour"], values["currency"], begins)
        else:
            amount = "" if values["per_gpu_hour"] is None else values["per_gpu_hour"]
            services.check_price(values["flavor"], amount, values["currency"], begins)


@admin.register(Price)
class PriceAdmin(DatedAdmin):
    form = PriceForm
    list_display = ("flavor", "offering", "per_gpu_hour", "per_slice_hour", "currency", "valid_from", "source")
    list_filter = ("flavor",)
    list_select_related = ("flavor", "offering")

    def save_model(self, request: HttpRequest, obj: Price, form: forms.ModelForm, change: bool) -> None:
        actor, common = request.user.get_username(), (obj.currency, obj.valid_from, obj.source)
        if obj.offering is None:
            assert obj.per_gpu_hour is not None
            obj.pk = services.set_price(actor, obj.flavor, obj.per_gpu_hour, *common).pk
        else:
            obj.pk = services.set_slice_price(actor, obj.offering, obj.per_slice_hour, *common).pk


class NodeCostForm(CheckedForm):
    def check_values(self, values: dict[str, Any]) -> None:
        capacity_services.check_node_cost(
            _subject(values),
            values["per_hour"],
            values["per"],
            _split(values),
            values["currency"],
            values["valid_from"],
            clock.now(),
        )


@admin.register(NodeCost)
class NodeCostAdmin(DatedAdmin):
    form = NodeCostForm
    list_display = ("flavor", "term", "node", "per_hour", "per", "currency", "valid_from", "source")
    list_filter = ("flavor", "term")
    list_select_related = ("flavor", "node")

    def save_model(self, request: HttpRequest, obj: NodeCost, form: forms.ModelForm, change: bool) -> None:
        values = form.cleaned_data
        obj.pk = capacity_services.set_node_cost(
            request.user.get_username(),
            _subject(values),
            obj.per_hour,
            NodeCost.Per(obj.per),
            _split(values),
            obj.currency,
            obj.valid_from,
            obj.source,
        ).pk


class NodeTermForm(CheckedForm):
    def check_values(self, values: dict[str, Any]) -> None:
        capacity_services.check_node_term(values["node"], Term(values["term"]), values["valid_from"], clock.now())


@admin.register(NodeTerm)
class NodeTermAdmin(DatedAdmin):
    form = NodeTermForm
    list_display = ("node", "term", "valid_from")
    list_filter = ("term",)
    list_select_related = ("node",)

    def save_model(self, request: HttpRequest, obj: NodeTerm, form: forms.ModelForm, change: bool) -> None:
        actor = request.user.get_username()
        obj.pk = capacity_services.set_node_term(actor, obj.node, Term(obj.term), obj.valid_from).pk


@admin.register(NodeInterval)
class NodeIntervalAdmin(ReadOnlyAdmin):
    list_display = ("node", "term", "cpu_millicores", "memory_mib", "start", "end")
    list_filter = ("cluster", "term")
    search_fields = ("node",)


@admin.register(Bill)
class BillAdmin(ReadOnlyAdmin):
    list_display = ("month", "cluster", "amount", "currency", "source", "recorded_at")
    list_filter = ("cluster",)


@admin.register(SharedCost)
class SharedCostAdmin(ReadOnlyAdmin):
    list_display = ("name", "month", "amount", "currency", "split", "cluster", "source")
    list_filter = ("split",)


@admin.register(CapacityCostHour, CapacityCostDay, CapacityCostMonth)
class CapacityCostAdmin(ReadOnlyAdmin):
    list_display = ("start", "cluster", "flavor", "term", "part", "price", "denominator", "amount")
    list_filter = ("cluster", "part", "term")
    show_full_result_count = False


@admin.register(SavedView)
class SavedViewAdmin(ReadOnlyAdmin):
    list_display = ("name", "owner", "team", "created_at")
    list_filter = ("team",)
    list_select_related = ("owner", "team")
    search_fields = ("name", "owner__username")


def _subject(values: Mapping[str, Any]) -> CostSubject:
    return CostSubject(values["flavor"], Term(values["term"]) if values["term"] else None, values["node"])


def _split(values: Mapping[str, Any]) -> Weights | None:
    """Return the weights of a form; None of a cost per GPU, unless CPU or memory have one, which is an error."""
    weights = capacity_services.weights(":".join(f"{values[name]:f}" for name in WEIGHTS))
    return None if values["per"] == NodeCost.Per.GPU and not (weights.cpu or weights.memory_gib) else weights
