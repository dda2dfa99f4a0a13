"""The OpenAPI schemas of the fields of `portal.api.http.strict` that take more than one JSON type."""

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema


class AmountSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # the package has no types
    target_class = "portal.api.http.strict.Amount"

    def map_serializer_field(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        """Return a number within the field's bounds, or the same as text, which keeps all digits."""
        field = self.target
        whole = field.max_digits - field.decimal_places
        text = {"type": "string", "pattern": rf"^[0-9]{{1,{whole}}}(\.[0-9]{{1,{field.decimal_places}}})?$"}
        bounds = {"minimum": field.min_value, "maximum": field.max_value}
        number = {"type": "number", **{name: float(value) for name, value in bounds.items() if value is not None}}
        return {"anyOf": [{**text, "format": "decimal"}, number]}


class QuantitySchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # the package has no types
    target_class = "portal.api.http.strict.Quantity"

    def map_serializer_field(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        """Return text with a unit, or an integer in the base unit."""
        return {"anyOf": [{"type": "string", "minLength": 1}, {"type": "integer"}]}
