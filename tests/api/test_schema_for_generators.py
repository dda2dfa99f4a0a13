"""What generators of clients trip over, as rules of the whole schema: names, defaults, choices, types, descriptions."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from portal.api.urls import v1
from tests.support import api_contract
from tests.support.world import World, world


def schemas(part: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object of the document, with its place."""
    if isinstance(part, dict):
        yield place, part
        for name, each in part.items():
            yield from schemas(each, f"{place}/{name}")
    if isinstance(part, list):
        for number, each in enumerate(part):
            yield from schemas(each, f"{place}/{number}")


def components() -> dict[str, Any]:
    return dict(api_contract.document()["components"]["schemas"])


def referenced(part: Any) -> set[str]:
    return {one["$ref"].rpartition("/")[2] for _, one in schemas(part) if isinstance(one.get("$ref"), str)}


def test_no_two_names_of_components_differ_in_case_alone():
    """ogen puts all of them into one package."""
    kinds = api_contract.document()["components"].values()
    names = [name.casefold() for kind in kinds for name in kind]
    assert len(set(names)) == len(names)


def sent_ones() -> set[str]:
    """Return the names of the components that requests have."""
    operations = [one for path in api_contract.document()["paths"].values() for one in path.values()]
    sent, left = set[str](), referenced([one["requestBody"] for one in operations if "requestBody" in one])
    while left:
        sent |= left
        left = referenced([components()[name] for name in left]) - sent
    return sent


def test_a_later_release_may_add_to_answers_and_a_request_has_no_unknown_field():
    """A decoder that is generated from a closed object fails when it gains a member."""
    objects = {name: one for name, one in components().items() if one.get("type") == "object"}
    closed = {name for name, one in objects.items() if one.get("additionalProperties") is False}
    assert closed == {name for name in sent_ones() & objects.keys() if not name.endswith("Out")}


def test_what_is_only_answered_is_named_for_it():
    sent = sent_ones()
    answered = {name for name, one in components().items() if name not in sent and "enum" not in one} - {"NullEnum"}
    assert {name for name in answered if not name.endswith(("Out", "Page", "Problem"))} == set()


def test_every_default_is_one_of_what_the_schema_takes():
    for place, one in schemas(api_contract.document()):
        if "default" in one and "properties" not in place.rpartition("/")[2]:
            assert "anyOf" not in one, f"{place}: in typed languages a default has one type"
            assert list(api_contract.errors({k: v for k, v in one.items() if k != "default"}, one["default"])) == []


def test_no_choice_is_between_an_enumeration_and_the_empty_text():
    for place, one in schemas(components()):
        choices = [components().get(name, {}) for name in referenced(one.get("oneOf", []))]
        assert not any(choice.get("enum") == [""] for choice in choices), place


def test_no_choice_is_between_two_of_one_type():
    """ogen cannot tell them apart."""
    for place, one in schemas(components()):
        types = [str(each.get("type", each)) for kind in ("oneOf", "anyOf") for each in one.get(kind, ())]
        assert len(set(types)) == len(types), place


def test_every_enumeration_is_used():
    used = referenced(api_contract.document())
    assert {name for name, one in components().items() if "enum" in one} - used == set()


def test_every_property_has_a_type():
    typed = {"type", "$ref", "oneOf", "anyOf", "allOf", "enum", "const"}
    for component, one in components().items():
        for name, field in one.get("properties", {}).items():
            assert typed & field.keys(), f"{component}.{name}"


def test_no_description_is_for_who_reads_the_code():
    for place, one in schemas(api_contract.document()):
        assert "``" not in str(one.get("description", "")), place


def test_no_parameter_of_the_schema_leaves_required_fields_out_of_an_answer():
    for path in api_contract.document()["paths"].values():
        for operation in path.values():
            assert "fields" not in {each["name"] for each in operation.get("parameters", ())}


@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        *(("0", False), ("0.0", False), ("000", False), ("0.0000001", False), ("1e3", False), ("-1", False)),
        *(("1", True), ("8760", True), ("0.5", True), ("0.000001", True), ("10.10", True), ("08", True)),
    ],
)
def test_hours_of_the_schema_are_above_0(text, is_taken):
    [pattern] = [
        one["pattern"] for one in components()["ExtendRequest"]["properties"]["hours"]["anyOf"] if "pattern" in one
    ]
    assert bool(re.search(pattern, text)) == is_taken
    assert not is_taken or Decimal(text) > 0


def test_what_is_called_a_decimal_anywhere_is_one_everywhere():
    texts = {
        (name, field): described
        for name, one in components().items()
        for field, described in one.get("properties", {}).items()
        if "string" in str(described.get("type")) and name.endswith(("Out", "Page"))
    }
    decimals = {field for (_, field), described in texts.items() if described.get("format") == "decimal"}
    assert {"total", "gpu_hours", "per_hour", "weight"} <= decimals
    others = {key for key, one in texts.items() if one.get("format") != "decimal"}
    assert {key for key in others if key[1] in decimals or "Decimal" in texts[key].get("description", "")} == {
        ("FailureOut", "expected")  # of the proof: an amount, or a word
    }


def test_ids_in_paths_have_their_type():
    found = {
        name: {one["schema"].get("format", one["schema"]["type"])}
        for path in api_contract.document()["paths"].values()
        for operation in path.values()
        for one in operation.get("parameters", ())
        if one["in"] == "path" and re.fullmatch(r"(\w+_)?(u?id)_?", name := one["name"])
    }
    assert set().union(*found.values()) == {"integer", "uuid"}, found


@pytest.mark.parametrize(
    ("component", "body", "is_taken"),
    [
        ("AllocationRequest", {"hours": "1"}, True),
        ("AllocationRequest", {"hours": None, "ends_at": "2031-01-01T00:00:00Z"}, True),
        ("AllocationRequest", {"hours": "1", "ends_at": "2031-01-01T00:00:00Z"}, False),
        ("AllocationRequest", {"give_up_after": "1", "give_up_at": "2031-01-01T00:00:00Z"}, False),
        ("AllocationRequest", {"name": ""}, True),
        ("AllocationRequest", {"name": "a" * 48}, True),
        ("AllocationRequest", {"name": "a" * 49}, False),
        ("AllocationRequest", {"name": "-a"}, False),
        ("LimitBody", {"team": "a", "member": "b", "pool": "c"}, True),
        ("LimitBody", {"team": "a", "department": "b"}, False),
        ("LimitBody", {"team": "a", "pool": "b", "flavor": "c"}, False),
        ("BulkRelease", {"ids": ["a"], "phase": ["active"]}, False),
        ("NewPrice", {"flavor": "a", "offering": "a/b"}, False),
        ("NewNodeCost", {"flavor": "a", "node": "b"}, False),
        ("ProjectChange", {"config_size_kib": 1024}, True),
        ("ProjectChange", {"config_size_kib": 1025}, False),
    ],
)
def test_the_schema_tells_what_fields_exclude_each_other_and_their_bounds(component, body, is_taken):
    required: dict[str, dict[str, object]] = {
        "AllocationRequest": {"project": "p", "offering": "h100/whole"},
        "LimitBody": {"nominal": 1},
        "NewNodeCost": {"per": "gpu", "per_hour": "1"},
    }
    schema = {"$ref": f"#/components/schemas/{component}"}
    assert (list(api_contract.errors(schema, {**required.get(component, {}), **body})) == []) == is_taken


def test_no_pattern_needs_what_re2_has_not():
    """Go's regexp and Rust's have no look-around and no back-references."""
    for place, one in schemas(components()):
        assert not re.search(r"\(\?[=!<]|\\[1-9]", str(one.get("pattern", ""))), place


def test_a_method_that_is_not_there_is_refused_with_a_title(client):
    assert client.trace("/api/v1/schema").json()["title"] == "Method Not Allowed"


@pytest.mark.django_db
def test_every_default_of_a_query_may_be_sent(team, other_team, project):
    there: World = world(team, other_team, project)
    sent = 0
    for route in v1:
        pattern = f"/api/v1/{route.pattern}"
        path = api_contract.document()["paths"].get(re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", pattern), {})
        parameters = path.get("get", {}).get("parameters", ())
        if defaults := {one["name"]: one["schema"]["default"] for one in parameters if "default" in one["schema"]}:
            bare, written = (
                there.clients["operator"].get(there.path(pattern, "operator"), query) for query in ({}, defaults)
            )
            assert written.status_code == bare.status_code, f"{pattern} {defaults}: {written.content!r}"
            sent += written.status_code == 200
    assert sent >= 10
