"""One dataclass is the schema of an object in an answer, and its document."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Literal

import pytest
from rest_framework import serializers

from allocations.domain.documents import FieldInfo
from portal.api.schemas.decimal_text import DecimalText
from portal.api.schemas.json_object import JsonObject
from portal.api.schemas.outputs import INLINE, document, output_of
from portal.core.money import DecimalString

AT = datetime(2026, 11, 27, tzinfo=UTC)


@dataclass(frozen=True)
class Wheel:
    spokes: Annotated[int, "Of steel."]


@dataclass(frozen=True)
class Frame:
    size: str
    front: Wheel


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


def test_a_document_has_the_fields_in_order_and_those_of_the_objects_in_it():
    assert list(document(bicycle(spare=Wheel(36))).items())[:5] == [
        ("name", "a"),
        ("size", "M"),
        ("wheels", [{"spokes": 28}, {"spokes": 32}]),
        ("spare", {"spokes": 36}),
        ("price", None),
    ]


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


def test_an_object_among_the_plain_fields_of_another_is_left_out():
    assert "front" not in output_of(Bicycle)().fields.keys() | document(bicycle()).keys()


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
