"""Frozen dataclasses to JSON documents and back, by the types of their fields. Pure.

A class that has ``to_json`` and ``from_json`` of its own is written and read by them.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from decimal import Decimal
from functools import cache
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class FieldInfo:
    """What interfaces say of a field. ``choices`` are only described; ``is_required``: a body that has its object has
    to say it, though it has a default. A field of text with a ``label`` is on the request page and on the
    allocation's, ``hint`` below it."""

    help: str = ""
    max_length: int | None = None
    choices: tuple[str, ...] = ()
    is_required: bool = False
    label: str = ""
    hint: str = ""


@dataclass(frozen=True)
class SpecField:
    """A field of a dataclass: ``type`` without None, ``default`` MISSING where a value has to be given."""

    name: str
    type: Any
    is_optional: bool
    default: Any
    info: FieldInfo

    @property
    def is_required(self) -> bool:
        return self.default is MISSING


def fields_of(cls: Any) -> tuple[SpecField, ...]:
    """The fields of a dataclass, in their order, with the ``FieldInfo`` that ``Annotated`` gives them."""
    return _fields_of(cls)


@cache
def _fields_of(cls: Any) -> tuple[SpecField, ...]:
    hints = get_type_hints(cls, include_extras=True)
    return tuple(_field(each.name, hints[each.name], each.default) for each in fields(cls))


def _field(name: str, hint: Any, default: Any) -> SpecField:
    info = FieldInfo()
    if get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        info = next((extra for extra in extras if isinstance(extra, FieldInfo)), info)
    options = get_args(hint)
    is_optional = NoneType in options
    kept = next(option for option in options if option is not NoneType) if is_optional else hint
    return SpecField(name, kept, is_optional, default, info)


def to_json(value: Any) -> Any:
    """The value as JSON has it."""
    match value:
        case datetime():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
    return value.to_json() if hasattr(value, "to_json") else value


def document(value: Any) -> dict[str, Any]:
    """A dataclass as a JSON object with all its fields."""
    return {each.name: to_json(getattr(value, each.name)) for each in fields_of(type(value))}


def values(cls: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a dataclass from a JSON object, or from values that were read already.

    Names that are no fields are left out. What is absent or null has its default; KeyError where there is none.
    """
    found: dict[str, Any] = {}
    for each in fields_of(cls):
        value = given.get(each.name)
        if value is None and each.is_required:
            raise KeyError(each.name)
        if value is not None:
            found[each.name] = _read(each.type, value)
    return found


def _read(type_: Any, value: Any) -> Any:
    if isinstance(type_, type) and isinstance(value, type_):
        return value
    if type_ is datetime:
        return datetime.fromisoformat(value)
    if type_ is Decimal:
        return Decimal(value)
    return type_.from_json(value) if hasattr(type_, "from_json") else value
