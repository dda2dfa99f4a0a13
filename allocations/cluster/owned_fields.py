"""What our server-side apply owns of an object: the fields and their values. Pure.

``metadata.managedFields`` names fields without their values, in the format FieldsV1 of Kubernetes' meta/v1:
``f:<name>`` is a field, ``k:<keys>`` the item of a list with these keys, ``v:<value>`` a member of a set, ``i:<index>``
an item of a list, ``.`` the thing itself; ``{}`` ends a path.
"""

import json
from collections.abc import Mapping
from typing import Any

from allocations.cluster import names


def owned_values(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the fields that we own, keyed as FieldsV1 keys them; empty when we own none.

    A foreign change of one of them moves its ownership, and a change of our own its value: both change what is
    returned. The entry's ``time`` does not count: it moves without either.
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
    """What stands in ``value`` under a key of FieldsV1; None where nothing does."""
    kind, _, name = key.partition(":")
    match kind, value:
        case "f", Mapping():
            return value.get(name)
        case "k", list():
            wanted = json.loads(name).items()
            return next((item for item in value if wanted <= item.items()), None)
        case "v", _:
            return json.loads(name)
        case "i", list():
            return dict(enumerate(value)).get(int(name))
    return None
