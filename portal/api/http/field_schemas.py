"""The OpenAPI schemas of fields of `portal.api.http.strict` of which drf-spectacular does not know what they take."""

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema


class TextSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # the package has no types
    target_class = "portal.api.http.strict.Text"

    def map_serializer_field(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        """Return text that is not empty, unless it may be."""
        mapped: dict[str, Any] = auto_schema._map_serializer_field(  # type: ignore[no-untyped-call]
            self.target, direction, bypass_extensions=True
        )
        shortest = {} if self.target.allow_blank else {"minLength": 1}
        return {**mapped, "type": "string", **shortest}  # drf-spectacular adds null, which it has added already


class AmountSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # the package has no types
    target_class = "portal.api.http.strict.Amount"

    def map_serializer_field(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        """Return a number within the field's bounds, or the same as text, which keeps all digits."""
        field = self.target
        text = {"type": "string", "pattern": _pattern(field)}
        bounds = {"minimum": field.min_value, "maximum": field.max_value}
        number = {"type": "number", **{name: float(value) for name, value in bounds.items() if value is not None}}
        return {"anyOf": [{**text, "format": "decimal"}, number]}


def _pattern(field: Any) -> str:
    """Return a pattern of the decimals that the field takes: with as many digits, and not 0 if that is too low. Without
    look-ahead, which RE2 has not (https://github.com/google/re2/wiki/Syntax).
    """
    whole, decimals = field.max_digits - field.decimal_places, field.decimal_places
    if field.max_value is not None:
        whole = len(str(int(field.max_value)))
    if field.min_value is None or field.min_value <= 0:
        return rf"^[0-9]{{1,{whole}}}(\.[0-9]{{1,{decimals}}})?$"
    parts = "|".join(f"0{{{zeros}}}[1-9][0-9]{{0,{decimals - 1 - zeros}}}" for zeros in range(decimals))
    return rf"^(0*[1-9][0-9]{{0,{whole - 1}}}(\.[0-9]{{1,{decimals}}})?|0+\.({parts}))$"


class AsShownSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # the package has no types
    target_class = "portal.api.http.edits.AsShown"

    def map_serializer_field(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        """Return the schema of the field in the answer, as read-only: a change of it is refused or ignored."""
        answer: Any = auto_schema.resolve_serializer(self.target.shown, "response")
        described: dict[str, Any] = answer.schema["properties"][self.target.name]
        words = f"As GET gives it. {described.get('description', '')}".strip()
        return {**described, "description": words, "readOnly": True}


class QuantitySchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # the package has no types
    target_class = "portal.api.http.strict.Quantity"

    def map_serializer_field(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        """Return text with a unit, or an integer in the base unit."""
        return {"anyOf": [{"type": "string", "minLength": 1}, {"type": "integer"}]}
