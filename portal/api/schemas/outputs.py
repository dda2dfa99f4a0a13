"""One description of an object of an answer gives its schema in OpenAPI, and its document: a frozen dataclass, or a
NamedTuple.

The type of a field gives its schema: ``str``, ``int``, ``bool``, ``datetime``, ``date``, ``UUID``, a decimal number of
``portal.core.money``, an enum, a ``Literal``, another description, a sequence of any of these, a mapping of texts or
whole numbers, and a mapping of any values; with ``| None`` it may be null. ``Annotated`` adds words for people,
``FieldInfo`` (of which ``help`` and ``choices`` count), ``INLINE``, a ``partial`` of a field of REST framework where no
type says it, and a function that reads the value of what is answered where it is no attribute of the same name::

    devices: Annotated[Sequence[DeviceHeldOut], "Held now."]
    team: Annotated[str, attrgetter("project.team.slug")]
    cost: Annotated[Money | None, "Null without a price."]
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import cache, partial
from operator import attrgetter
from typing import Any, Literal, NamedTuple, get_args, get_origin
from uuid import UUID

from rest_framework import serializers

from allocations.domain.documents import SpecField, fields_of
from portal.api.schemas.decimal_text import DecimalText
from portal.api.schemas.json_object import JsonObject
from portal.core.money import Written

INLINE = object()
"""Says that the members of a description are members of the object that has it; its later ones of that name replace
them.
"""
FIELDS: Mapping[Any, type[serializers.Field]] = {
    str: serializers.CharField,
    int: serializers.IntegerField,
    bool: serializers.BooleanField,
    date: serializers.DateField,
    datetime: serializers.DateTimeField,
    UUID: serializers.UUIDField,
    Decimal: DecimalText,
}


class Member(NamedTuple):
    """A member of a document: its name, what makes its field, what reads its value, and what writes it, if anything."""

    name: str
    field: Callable[[], serializers.Field]
    read: Callable[[Any], Any]
    write: Callable[[Any], Any] | None


@cache
def output_of(cls: Any, name: str = "") -> type[serializers.Serializer]:
    """Return the serializer that describes a description. Its component has the name, or that of the class with ``Out``
    at its end.
    """
    name = name or f"{cls.__name__.removesuffix('Out')}Out"
    return type(name, (serializers.Serializer,), {each.name: each.field() for each in _members(cls)})


def document(value: Any, cls: Any = None) -> dict[str, Any]:
    """Return a value as it is answered: the members of a description, by default of its own, in order."""
    found = {}
    described: Any = cls or type(value)
    for name, _, read, write in _members(described):
        shown = read(value)
        found[name] = shown if write is None or shown is None else write(shown)
    return found


def documents(values: Iterable[Any], cls: Any) -> list[dict[str, Any]]:
    return [document(value, cls) for value in values]


@cache
def _members(cls: Any) -> tuple[Member, ...]:
    return tuple({member.name: member for each in fields_of(cls) for member in _members_of(each)}.values())


def _members_of(field: SpecField) -> Iterator[Member]:
    given = (extra for extra in field.extras if callable(extra) and not isinstance(extra, partial))
    read = next(given, attrgetter(field.name))
    if INLINE in field.extras:
        for inner in _members(field.type):
            yield inner._replace(read=_composed(inner.read, read))
    else:
        described = {"help_text": field.info.help} if field.info.help else {}
        yield Member(field.name, partial(_field, field, **described), read, _write(field))


def _composed(inner: Callable[[Any], Any], outer: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: inner(outer(value))


def _write(field: SpecField) -> Callable[[Any], Any] | None:
    if field.type is not str and (amount := written(field)):
        return amount.text
    if _is_object(field.type):
        return partial(document, cls=field.type)
    of = _items(field.type)
    return partial(documents, cls=of) if _is_object(of) else None


def written(field: SpecField) -> Written | None:
    """Return how the amounts of a field are written; None of what is no decimal number."""
    default = Written("{:f}".format) if field.type is Decimal else None
    return next((extra for extra in field.extras if isinstance(extra, Written)), default)


def _field(field: SpecField, **options: Any) -> serializers.Field:
    options |= {"allow_null": True} if field.is_optional else {}
    given = next((extra for extra in field.extras if isinstance(extra, partial)), None)
    if given is not None:
        found: serializers.Field = given(**options)
        return found
    return _of_type(Decimal if written(field) else field.type, options, field.info.choices)


def _of_type(type_: Any, options: dict[str, Any], choices: Sequence[Any] = ()) -> serializers.Field:
    if isinstance(type_, type) and issubclass(type_, Enum):
        choices = [each.value for each in type_]
    if choices or get_origin(type_) is Literal:
        return serializers.ChoiceField(choices or get_args(type_), **options)
    if _is_object(type_):
        return output_of(type_)(**options)
    if get_origin(type_) is Mapping:
        of = get_args(type_)[1]
        return JsonObject(**options) if of is Any else serializers.DictField(child=_of_type(of, {}), **options)
    if of := _items(type_):
        if _is_object(of):
            return output_of(of)(many=True, **options)
        return serializers.ListField(child=_of_type(of, {}), **options)
    return FIELDS[type_](**options)


def _is_object(type_: Any) -> bool:
    return is_dataclass(type_) or hasattr(type_, "_fields")


def _items(type_: Any) -> Any:
    """Return the type of the items of a sequence; None of what is no sequence."""
    return get_args(type_)[0] if get_origin(type_) in (Sequence, list, tuple) else None
