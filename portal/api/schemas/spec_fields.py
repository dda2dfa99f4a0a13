"""Bodies derived from the fields of an AllocationSpec (``allocations.domain``)."""

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, get_origin

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from allocations.domain.allocation_spec import Labels
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.documents import FieldInfo, SpecField, fields_of
from allocations.requests.period import MAX_DURATION
from portal.api.http.strict import Amount, Body, Boolean, Integer, Table, Text, Timestamp
from portal.api.schemas.claim_input import ClaimField

MAX_HOURS = MAX_DURATION.days * 24
MIN_HOURS = Decimal("0.000001")


def hours_field(*, required: bool, help_text: str = "") -> Amount:
    out_of_range = f"Give a number above 0, at most {MAX_HOURS}."
    return Amount(
        max_digits=12,
        decimal_places=6,
        min_value=MIN_HOURS,
        max_value=Decimal(MAX_HOURS),
        required=required,
        allow_null=not required,
        error_messages={"min_value": out_of_range, "max_value": out_of_range},
        help_text=f"{help_text} Above 0, at most {MAX_HOURS}.".strip(),
    )


def body_of(cls: Any, **extras: Any) -> type[Body]:
    """Return the body class of a dataclass; ``extras`` become attributes of it."""
    return type(cls.__name__, (Body,), {each.name: _input(each) for each in fields_of(cls)} | extras)


def _input(field: SpecField) -> serializers.Field:
    described = {"help_text": field.info.help} if field.info.help else {}
    optional: dict[str, Any] = {"required": False, "allow_null": True, **described}
    if field.type is Decimal:
        return hours_field(required=False, help_text=field.info.help)
    if field.type is datetime:
        return Timestamp(**optional)
    if field.type is CustomClaim:
        return ClaimField(**optional)
    if get_origin(field.type) is Mapping:
        return Table(child=Text(), **optional)
    if field.type is Labels:
        return Table(child=Text(allow_blank=True), **optional)
    if is_dataclass(field.type):
        return body_of(field.type)(**optional)
    return _scalar(field, optional if field.is_optional else described)


def _scalar(field: SpecField, options: dict[str, Any]) -> serializers.Field:
    if not (field.is_optional or field.is_required or field.info.is_required):
        options = {**options, "default": field.default}
    if field.type is int:
        return _bounded(field.info)(**options)
    if field.type is bool:
        return Boolean(**options)
    if options.get("default") == "":
        options = {**options, "allow_blank": True}
    text = _one_of(field.info.choices) if field.info.choices else _like(field.info) if field.info.pattern else Text
    return text(max_length=field.info.max_length, **options)


def _bounded(info: FieldInfo) -> type[Integer]:
    """Return the class of an integer field whose bounds are described; the rules of the request check them."""
    if info.minimum is None:
        return Integer
    bounds = {"minimum": info.minimum, "maximum": info.maximum}
    return extend_schema_field({"type": "integer", **bounds})(type("Bounded", (Integer,), {}))


def _one_of(choices: Sequence[str]) -> type[Text]:
    """Return the class of a text field whose choices are described; the rules of the request check them."""
    described = extend_schema_field({"type": "string", "enum": list(choices)})
    return described(type("Choice", (Text,), {}))


def _like(info: FieldInfo) -> type[Text]:
    """Return the class of a text field whose pattern is described; it may be empty."""
    return extend_schema_field({"type": "string", "pattern": f"^({info.pattern})?$"})(type("Like", (Text,), {}))
