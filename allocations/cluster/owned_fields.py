"""Reads the fields of an object that the portal's server-side apply owns, with their values. Pure.

``metadata.managedFields`` lists fields without their values, in the format FieldsV1 of Kubernetes' meta/v1:
``f:<name>`` is a field, ``k:<keys>`` the list item with these keys, ``v:<value>`` a set member, ``i:<index>`` a list
item by position, ``.`` the object itself; ``{}`` ends a path.
"""

import json
from collections.abc import Mapping
from typing import Any

from allocations.cluster import names


def owned_values(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the fields that the portal owns, keyed as in FieldsV1; empty if it owns none.

    The result changes when another manager changes such a field (ownership moves) and when the portal does (its value
    changes). The entry's ``time`` is left out, since it also changes otherwise.
    """
    for entry in raw["metadata"].get("managedFields", ()):
        is_ours = entry.get("manager") == names.FIELD_MANAGER and entry.get("operation") == "Apply"
        if is_ours and not entry.get("subresource"):
            fields: Mapping[str, Any] = entry.get("fieldsV1", {})
            return {key: _values(inner, _at(raw, key)) for key, inner in fields.items()}
    return {}


def _values(fields: Mapping[str, Any], value: Any) -> Any:
    if not fields:
        return value
    return {key: _values(inner, _at(value, key)) for key, inner in fields.items() if key != "."}


def _at(value: Any, key: str) -> Any:
    """Return what ``value`` has under a key of FieldsV1; None if nothing."""
    kind, _, name = key.partition(":")
    match kind, value:
        case "f", Mapping():
            return value.get(name)
        case "k", list():
            keys = json.loads(name).items()
            return next((item for item in value if keys <= item.items()), None)
        case "v", _:
            return json.loads(name)
        case "i", list():
            return dict(enumerate(value)).get(int(name))
    return None
