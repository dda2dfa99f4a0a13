"""The schema of a custom device claim; ``allocations.claims`` validates its content against published devices."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from allocations.claims import cel
from allocations.claims.model import CLASSES, MAX_DEVICES
from allocations.claims.parse import MAX_CHOICES, MAX_ITEMS
from allocations.domain.allocation_spec import INTERVALS, STRATEGIES
from allocations.domain.custom_claim import CustomClaim

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _list(of: dict[str, Any], most: int = MAX_ITEMS) -> dict[str, Any]:
    return {"type": "array", "items": of, "maxItems": most}


_CONDITION = _object(
    name={"type": "string", "description": "As GET /offerings/{id}/device-schema lists it."},
    operator={"type": "string", "enum": list(cel.OPERATORS)},
    value={"description": "Of the type in the device schema; a list with `in`. Amounts and versions are strings."},
)
_CHOICE = {
    "device": {"type": "string", "enum": list(CLASSES)},
    "count": {
        "oneOf": [{"type": "integer", "minimum": 1, "maximum": MAX_DEVICES}, {"type": "string", "enum": ["all"]}]
    },
    "profile": {"type": "string", "description": "Of MIG devices, e.g. 1g.10gb."},
    "attributes": _list(_CONDITION),
    "capacities": _list(_CONDITION),
    "capacity": {
        "type": "object",
        "additionalProperties": _TEXT,
        "description": 'Taken of a shared device: {shares: "1"}.',
    },
    "tolerations": _list(_object(key=_TEXT, operator=_TEXT, value=_TEXT, effect=_TEXT, seconds={"type": "integer"})),
    "cel": {**_TEXTS, "description": "Operators only: CEL as it is, tried by the API server first."},
}
_SHARING = _object(
    strategy={"type": "string", "enum": list(STRATEGIES)},
    interval={"type": "string", "enum": list(INTERVALS)},
    active_thread_percentage={"type": "integer", "minimum": 0, "maximum": 100},
    pinned_memory_limit=_TEXT,
    per_device_pinned_memory_limit={"type": "object", "additionalProperties": _TEXT},
)
SCHEMA = {
    **_object(
        requests=_list(
            _object(
                name=_TEXT,
                **_CHOICE,
                admin_access={"type": "boolean", "description": "Operators only."},
                alternatives={
                    **_list(_object(name=_TEXT, **_CHOICE), MAX_CHOICES),
                    "description": "Instead of a device: the first of these that can be had.",
                },
            )
        ),
        constraints=_list(_object(match_attribute=_TEXT, distinct_attribute=_TEXT, requests=_TEXTS)),
        config=_list(_object(requests=_TEXTS, sharing=_SHARING)),
    ),
    "required": ["requests"],
    "description": "A custom DRA request, for an offering `<flavor>/claim`.",
}


@extend_schema_field(SCHEMA)
class ClaimField(serializers.Field):
    """A JSON object."""

    def to_internal_value(self, data: Any) -> CustomClaim:
        if not isinstance(data, Mapping):
            raise serializers.ValidationError("Give a JSON object.")
        return CustomClaim(data)
