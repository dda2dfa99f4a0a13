"""The form of a custom claim: rows of fields, converted into the document that the service takes.

Field names are ``d<row>-<field>`` and ``d<row>-c<condition>-<part>``; ``rows`` is the number of rows, and the buttons
``more`` and ``fewer`` change it, with a script or without. A condition's name carries its type, as ``int:numaNode``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from allocations.claims.cel import OPERATORS
from allocations.claims.device_schema import DeviceSchema
from allocations.claims.model import CLASSES

MAX_ROWS = 8
CONDITIONS = 2
DEVICES = {"gpu": "whole GPU", "mig": "MIG slice"}
WORDS = {"==": "is", "!=": "is not", ">": "above", ">=": "at least", "<": "below", "<=": "at most", "in": "one of"}
Values = Mapping[str, str]


@dataclass(frozen=True)
class Condition:
    at: str
    name: str
    operator: str
    value: str


@dataclass(frozen=True)
class Row:
    """One request, or an alternative to the one before (``instead``), as it was typed."""

    number: int
    at: str
    device: str
    count: str
    profile: str
    shares: str
    tolerate: str
    cel: str
    admin: bool
    instead: bool
    conditions: list[Condition]


def is_claim(offering: str) -> bool:
    return offering.endswith("/claim")


def rows(values: Values) -> list[Row]:
    """Return the rows to show; one empty row at first."""
    given = values.get("rows", "1")
    count = int(given) if given.isascii() and given.isdigit() and len(given) < 3 else 1
    count += ("more" in values) - ("fewer" in values)
    return [_row(values, index) for index in range(max(1, min(count, MAX_ROWS)))]


def _row(values: Values, index: int) -> Row:
    at = f"d{index}"
    return Row(
        number=index + 1,
        at=at,
        device=values.get(f"{at}-device", "gpu"),
        count=values.get(f"{at}-count", "1"),
        profile=values.get(f"{at}-profile", ""),
        shares=values.get(f"{at}-shares", ""),
        tolerate=values.get(f"{at}-tolerate", ""),
        cel=values.get(f"{at}-cel", ""),
        admin=f"{at}-admin" in values,
        instead=index > 0 and f"{at}-instead" in values,
        conditions=[
            Condition(
                at=f"{at}-c{place}",
                name=values.get(f"{at}-c{place}-name", ""),
                operator=values.get(f"{at}-c{place}-operator", "=="),
                value=values.get(f"{at}-c{place}-value", ""),
            )
            for place in range(CONDITIONS)
        ],
    )


def document(values: Values, sharing: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claim as the REST API takes it. Invalid input is passed on: the service reports it."""
    requests: list[dict[str, Any]] = []
    for row in rows(values):
        if row.instead and "alternatives" not in requests[-1]:
            requests[-1] = {"alternatives": [requests[-1]]}
        (requests[-1]["alternatives"] if row.instead else requests).append(_choice(row))
    built: dict[str, Any] = {"requests": requests}
    how, _, attribute = values.get("bind", "").partition(":")
    if attribute:
        built["constraints"] = [{"distinct_attribute" if how == "distinct" else "match_attribute": attribute}]
    return built | ({"config": [{"sharing": dict(sharing)}]} if sharing else {})


def _choice(row: Row) -> dict[str, Any]:
    conditions = [condition for condition in row.conditions if condition.name]
    found: dict[str, Any] = {
        "device": row.device,
        "count": _number(row.count.strip() or "1"),
        "profile": row.profile,
        "attributes": [_requested(c) for c in conditions if not c.name.startswith("quantity:")],
        "capacities": [_requested(c) for c in conditions if c.name.startswith("quantity:")],
        "capacity": {"shares": row.shares} if row.shares else {},
        "tolerations": [{"key": row.tolerate, "operator": "Exists"}] if row.tolerate else [],
        "cel": [row.cel] if row.cel.strip() else [],
        "admin_access": row.admin,
    }
    return {name: value for name, value in found.items() if value or name == "count"}


def _requested(condition: Condition) -> dict[str, Any]:
    type_, _, name = condition.name.partition(":")
    read = {"int": _number, "bool": _flag}.get(type_, str)
    text = condition.value.strip()
    value = [read(each.strip()) for each in text.split(",")] if condition.operator == "in" else read(text)
    return {"name": name, "operator": condition.operator, "value": value}


def _number(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text


def _flag(text: str) -> bool | str:
    return {"true": True, "false": False}.get(text.lower(), text)


def context(values: Values, schema: DeviceSchema, *, is_operator: bool) -> dict[str, Any]:
    """Return the context of the template."""
    listed = schema.document()
    return {
        "rows": rows(values),
        "bind": values.get("bind", ""),
        "devices": {kind: DEVICES[kind] for kind in CLASSES if kind in schema.devices},
        "profiles": schema.profiles,
        "names": [*listed["capacities"], *listed["attributes"]],
        "operators": {operator: WORDS[operator] for operator in OPERATORS},
        "shareable": schema.shareable,
        "is_operator": is_operator,
        "has_room": len(rows(values)) < MAX_ROWS,
    }


def field_label(field: str) -> str:
    """Return ``Request 1, count: `` for ``claim.requests[0].count``; "" for a field outside the claim."""
    if not field.startswith("claim."):
        return ""
    parts = field.removeprefix("claim.").split(".")
    said = [re.sub(r"\[(\d+)\]$", lambda match: f" {int(match[1]) + 1}", part) for part in parts]
    said[0] = re.sub(r"^requests (\d+)$", r"request \1", said[0])
    return f"{', '.join(said).capitalize()}: "
