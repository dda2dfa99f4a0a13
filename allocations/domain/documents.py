"""Converts frozen dataclasses to JSON documents and back, by the types of their fields. Pure.

A class with its own ``to_json`` and ``from_json`` is converted by them.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class FieldInfo:
    """How interfaces describe a field.

    ``choices``, ``minimum``, ``maximum`` and ``pattern`` are documented, not validated. ``is_required``: a body with
    the object must have the field, although it has a default. A text field with a ``label`` is on the pages of requests
    and allocations, with ``hint`` below it.
    """

    help: str = ""
    max_length: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    pattern: str = ""
    is_required: bool = False
    label: str = ""
    hint: str = ""


@dataclass(frozen=True)
class SpecField:
    """A field of a dataclass or NamedTuple. ``type`` is without None; ``default`` is MISSING if a value is required.
    ``extras`` are what else its ``Annotated`` types have.
    """

    name: str
    type: Any
    is_optional: bool
    default: Any
    info: FieldInfo
    extras: tuple[Any, ...] = ()

    @property
    def is_required(self) -> bool:
        return self.default is MISSING


def fields_of(cls: Any) -> tuple[SpecField, ...]:
    """Return the fields of a dataclass or NamedTuple in order, with the ``FieldInfo``, or its help, in their
    ``Annotated`` types.
    """
    return _fields_of(cls)


@cache
def _fields_of(cls: Any) -> tuple[SpecField, ...]:
    hints = get_type_hints(cls, include_extras=True)
    if is_dataclass(cls):
        return tuple(_field(each.name, hints[each.name], each.default) for each in fields(cls))
    return tuple(_field(name, hints[name], cls._field_defaults.get(name, MISSING)) for name in cls._fields)


def _field(name: str, hint: Any, default: Any) -> SpecField:
    type_, *extras = _unwrapped(hint)
    options = get_args(type_)
    if is_optional := NoneType in options:
        type_, *inner = _unwrapped(next(option for option in options if option is not NoneType))
        extras += inner
    infos = (FieldInfo(extra) if isinstance(extra, str) else extra for extra in extras)
    info = next((extra for extra in infos if isinstance(extra, FieldInfo)), FieldInfo())
    return SpecField(name, type_, is_optional, default, info, tuple(extras))


def _unwrapped(hint: Any) -> tuple[Any, ...]:
    """Return the type, and what else its ``Annotated`` type has."""
    return get_args(hint) if get_origin(hint) is Annotated else (hint,)


def to_json(value: Any) -> Any:
    """Return the value as JSON."""
    match value:
        case datetime():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
    return value.to_json() if hasattr(value, "to_json") else value


def document(value: Any) -> dict[str, Any]:
    """Return a dataclass instance as a JSON object with all its fields."""
    return {each.name: to_json(getattr(value, each.name)) for each in fields_of(type(value))}


def values(cls: Any, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a dataclass from a JSON object, whose values may be typed already.

    Unknown names are left out. Absent and null fields get their default. Raises KeyError for a field without a default.
    """
    known, required = _by_name(cls)
    for name in required:
        if document.get(name) is None:
            raise KeyError(name)
    return {
        name: _read(known[name].type, value) for name, value in document.items() if value is not None and name in known
    }


@cache
def _by_name(cls: Any) -> tuple[dict[str, SpecField], tuple[str, ...]]:
    """Return the fields by name, and the names of those without a default."""
    found = {each.name: each for each in fields_of(cls)}
    return found, tuple(name for name, each in found.items() if each.is_required)


def _read(type_: Any, value: Any) -> Any:
    if isinstance(type_, type) and isinstance(value, type_):
        return value
    if type_ is datetime:
        return datetime.fromisoformat(value)
    if type_ is Decimal:
        return Decimal(value)
    return type_.from_json(value) if hasattr(type_, "from_json") else value
