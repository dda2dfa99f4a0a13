"""Validates the values of conditions against the types that devices publish. Pure."""

import re
from typing import Any

from quotas.catalog import quantities

MAX_VALUE_LENGTH = 64
"""The longest string or version (resource.k8s.io/v1, DeviceAttributeMaxValueLength)."""
_INT64 = 2**63
_VERSION = re.compile(
    r"(0|[1-9]\d{0,17})\.(0|[1-9]\d{0,17})\.(0|[1-9]\d{0,17})(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)


def problem(value: Any, type_: str) -> str:
    """Return why the value is not of the type (``device_schema.AttributeInfo``); "" if it is."""
    if type_ == "bool":
        return "" if isinstance(value, bool) else "Give true or false."
    if type_ == "int":
        is_int = isinstance(value, int) and not isinstance(value, bool) and -_INT64 <= value < _INT64
        is_quoted = isinstance(value, str) and value.lstrip("-").isdecimal()
        return "" if is_int else f"Give a whole number{', as a JSON number' if is_quoted else ''}."
    if not isinstance(value, str):
        return "Give a string."
    if type_ == "quantity":
        return amount_problem(value)
    if len(value) > MAX_VALUE_LENGTH or not is_text(value):
        return f"Give at most {MAX_VALUE_LENGTH} characters, all of them real ones."
    if type_ == "version" and not _VERSION.fullmatch(value):
        return "Give a version of three numbers, such as 9.0.0."
    return ""


def amount_problem(value: Any) -> str:
    """Return why the value is not a quantity; "" if it is."""
    if not isinstance(value, str):
        return "Give an amount as a string, such as 40Gi."
    try:
        quantities.value(value)
    except ValueError as error:
        return f"{error}."
    return ""


def is_text(value: str) -> bool:
    """Return whether PostgreSQL can store the text: it has no NUL and no lone surrogate."""
    return not any(character == "\x00" or "\ud800" <= character <= "\udfff" for character in value)
