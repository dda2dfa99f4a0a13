"""One dataclass is the schema of an object in an answer, and its document."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from rest_framework import serializers

from allocations.domain.documents import FieldInfo
from portal.api.schemas.decimal_text import DecimalText
from portal.api.schemas.json_object import JsonObject
from portal.api.schemas.outputs import INLINE, document, output_of
from portal.core.money import DecimalString, Hours, Money, PlainDecimal

AT = datetime(2026, 11, 27, tzinfo=UTC)


@dataclass(frozen=True)
class Wheel:
    spokes: Annotated[int, "Of steel."]


@dataclass(frozen=True)
class Frame:
    size: str
    front: Wheel
    price: str = "of the frame alone"


class Use(StrEnum):
    COMMUTE = "commute"
    TOUR = "tour"


class Ride(NamedTuple):
    km: Annotated[int, "From door to door."]
    use: Use


@dataclass(frozen=True)
class Sale:
    """What is read from a ``Bicycle``."""

    label: Annotated[str, attrgetter("frame.size")]
    first: Annotated[Wheel, lambda sold: sold.wheels[0]]


@dataclass(frozen=True)
class Rent:
    hours: Hours
    cost: Annotated[Money | None, "Null without a price."]
    deposit: PlainDecimal
    tax: Decimal


@dataclass(frozen=True)
class Bicycle:
    name: str
    frame: Annotated[Frame, INLINE]
    wheels: Annotated[Sequence[Wheel], "From the front."]
    spare: Wheel | None
    price: DecimalString | None
    sold_at: datetime
    kind: Literal["city", "race"]
    colour: Annotated[str, FieldInfo("Of the frame.", choices=("red", "blue"))]
    slug: Annotated[str | None, "In addresses.", partial(serializers.SlugField, max_length=40)]
    labels: Mapping[str, str]
    attributes: Mapping[str, Any]
    sizes: Sequence[int]


def bicycle(**given: Any) -> Bicycle:
    values: dict[str, Any] = {
        **{"name": "a", "frame": Frame("M", Wheel(20)), "wheels": [Wheel(28), Wheel(32)], "spare": None},
        **{"price": None, "sold_at": AT, "kind": "city", "colour": "red", "slug": None},
        **{"labels": {}, "attributes": {}, "sizes": [1]},
    }
    return Bicycle(**values | given)


def test_a_document_has_the_members_in_order_and_those_of_the_objects_in_it():
    assert list(document(bicycle(spare=Wheel(36))).items())[:6] == [
        ("name", "a"),
        ("size", "M"),
        ("front", {"spokes": 20}),
        ("price", None),
        ("wheels", [{"spokes": 28}, {"spokes": 32}]),
        ("spare", {"spokes": 36}),
    ]


def test_a_member_may_be_read_from_elsewhere():
    assert document(bicycle(), Sale) == {"label": "M", "first": {"spokes": 28}}


def test_amounts_are_decimal_strings_of_their_places():
    assert document(Rent(Fraction(1, 3), Fraction(2, 3), Decimal("1E+2"), Decimal("0E-8"))) == {
        "hours": "0.333333",
        "cost": "0.6667",
        "deposit": "100",
        "tax": "0.00000000",
    }


def test_a_named_tuple_is_described_as_a_dataclass_is():
    assert document(Ride(3, Use.TOUR)) == {"km": 3, "use": "tour"}
    fields: Any = output_of(Ride)().fields
    assert (fields["km"].help_text, list(fields["use"].choices)) == ("From door to door.", ["commute", "tour"])


@pytest.mark.parametrize("name", ["hours", "cost", "deposit", "tax"])
def test_an_amount_is_described_as_a_decimal(name):
    assert isinstance(output_of(Rent)().fields[name], DecimalText)


def test_what_is_absent_is_null():
    assert document(bicycle())["spare"] is None


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("name", serializers.CharField),
        ("size", serializers.CharField),
        ("wheels", serializers.ListSerializer),
        ("spare", serializers.Serializer),
        ("price", DecimalText),
        ("sold_at", serializers.DateTimeField),
        ("kind", serializers.ChoiceField),
        ("colour", serializers.ChoiceField),
        ("slug", serializers.SlugField),
        ("labels", serializers.DictField),
        ("attributes", JsonObject),
        ("sizes", serializers.ListField),
    ],
)
def test_the_type_of_a_field_gives_its_schema(name, field):
    assert isinstance(output_of(Bicycle)().fields[name], field)


def test_an_own_member_replaces_one_of_another_description():
    assert isinstance(output_of(Bicycle)().fields["price"], DecimalText)
    assert document(bicycle(price="2.50"))["price"] == "2.50"


def test_what_may_be_none_may_be_null_and_nothing_else():
    fields = output_of(Bicycle)().fields
    assert {name for name, field in fields.items() if field.allow_null} == {"spare", "price", "slug"}


def test_words_are_those_of_the_type():
    fields = output_of(Bicycle)().fields
    assert {name: field.help_text for name, field in fields.items() if field.help_text} == {
        "wheels": "From the front.",
        "colour": "Of the frame.",
        "slug": "In addresses.",
    }


def test_choices_are_those_of_the_type():
    fields: Any = output_of(Bicycle)().fields
    assert list(fields["kind"].choices) == ["city", "race"]
    assert list(fields["colour"].choices) == ["red", "blue"]


def test_a_component_is_named_as_its_class_or_as_is_said():
    assert output_of(Wheel).__name__ == "WheelOut"
    assert output_of(Wheel, "RoundOut").__name__ == "RoundOut"
