"""One frozen dataclass describes an object of an answer: its schema in OpenAPI, and its document.

The type of a field gives its schema: ``str``, ``int``, ``bool``, ``datetime``, ``date``, ``UUID``, ``Decimal``,
``DecimalString``, a ``Literal``, another dataclass, a sequence of any of these, a mapping of texts, and
a mapping of any values; with ``| None`` it may be null. ``Annotated`` adds words for people, ``FieldInfo`` (of which
``help`` and ``choices`` count), ``INLINE``, or a ``partial`` of a field of REST framework where no type says it::

    devices: Annotated[Sequence[DeviceHeldOut], "Held now."]
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache, partial
from typing import Any, Literal, get_args, get_origin
from uuid import UUID

from rest_framework import serializers

from allocations.domain.documents import SpecField, fields_of
from portal.api.schemas.decimal_text import DecimalText
from portal.api.schemas.json_object import JsonObject
from portal.core.money import DECIMAL, DecimalString

INLINE = object()
"""Says that the plain fields of a dataclass are members of the object that has it."""
FIELDS: Mapping[Any, type[serializers.Field]] = {
    str: serializers.CharField,
    int: serializers.IntegerField,
    bool: serializers.BooleanField,
    date: serializers.DateField,
    datetime: serializers.DateTimeField,
    UUID: serializers.UUIDField,
    Decimal: DecimalText,
    DecimalString: DecimalText,
}


@cache
def output_of(cls: Any, name: str = "") -> type[serializers.Serializer]:
    """Return the serializer that describes a dataclass. Its component has the name, or that of the class with ``Out``
    at its end.
    """
    name = name or f"{cls.__name__.removesuffix('Out')}Out"
    return type(name, (serializers.Serializer,), dict(_fields(cls)))


def document(value: Any) -> dict[str, Any]:
    """Return a dataclass instance as it is answered: its fields in order, and those of the objects in it."""
    found: dict[str, Any] = {}
    cls: Any = type(value)
    for name, render in _renders(cls):
        shown = getattr(value, name)
        if render is None or shown is None:
            found[name] = shown
        elif isinstance(render, tuple):
            found.update((each, getattr(shown, each)) for each in render)
        else:
            found[name] = render(shown)
    return found


def document_or_none(value: Any) -> dict[str, Any] | None:
    return None if value is None else document(value)


def documents(values: Sequence[Any]) -> list[dict[str, Any]]:
    return [document(value) for value in values]


@cache
def plain_names(cls: Any) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass that are no objects."""
    return tuple(each.name for each in fields_of(cls) if _is_plain(each.type))


@cache
def _renders(cls: Any) -> tuple[tuple[str, Any], ...]:
    """Return each field with what renders its value: None if it is answered as it is, the names of its fields if they
    are inline.
    """
    return tuple(
        (each.name, plain_names(each.type) if INLINE in each.extras else _render(each.type)) for each in fields_of(cls)
    )


def _render(type_: Any) -> Callable[[Any], Any] | None:
    if _is_object(type_):
        return document
    return documents if _is_sequence(type_) and _is_object(get_args(type_)[0]) else None


def _fields(cls: Any) -> Iterator[tuple[str, serializers.Field]]:
    for each in fields_of(cls):
        if INLINE in each.extras:
            plain = plain_names(each.type)
            yield from ((one.name, _field(one)) for one in fields_of(each.type) if one.name in plain)
        else:
            yield each.name, _described(each)


def _described(field: SpecField) -> serializers.Field:
    described = {"help_text": field.info.help} if field.info.help else {}
    return _field(field, **described)


def _field(field: SpecField, **described: Any) -> serializers.Field:
    options: dict[str, Any] = described | ({"allow_null": True} if field.is_optional else {})
    given = next((extra for extra in field.extras if isinstance(extra, partial)), None)
    if given is not None:
        found: serializers.Field = given(**options)
        return found
    return _of_type(DecimalString if DECIMAL in field.extras else field.type, options, field.info.choices)


def _of_type(type_: Any, options: dict[str, Any], choices: Sequence[Any] = ()) -> serializers.Field:
    if choices or get_origin(type_) is Literal:
        return serializers.ChoiceField(choices or get_args(type_), **options)
    if _is_object(type_):
        return output_of(type_)(**options)
    if get_origin(type_) is Mapping:
        of = get_args(type_)[1]
        return JsonObject(**options) if of is Any else serializers.DictField(child=_of_type(of, {}), **options)
    if _is_sequence(type_):
        of = get_args(type_)[0]
        if _is_object(of):
            return output_of(of)(many=True, **options)
        return serializers.ListField(child=_of_type(of, {}), **options)
    return FIELDS[type_](**options)


def _is_object(type_: Any) -> bool:
    return is_dataclass(type_)


def _is_sequence(type_: Any) -> bool:
    return get_origin(type_) in (Sequence, list, tuple)


def _is_plain(type_: Any) -> bool:
    return type_ in FIELDS or get_origin(type_) in (Literal, Mapping)
