"""The filter grammar of costs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.errors import Invalid
from quotas.costs.filter_grammar import MAX_LENGTH, parse
from quotas.costs.filters import EVERYTHING, And, Comparison, Filter, Operator, Or, may_keep

EQUALS, CONTAINS = Operator.EQUALS, Operator.CONTAINS


def is_(key: str, *values: str, **options: bool) -> Comparison:
    return Comparison(key, EQUALS, values, **options)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", EVERYTHING),
        ('team:"vision"', is_("team", "vision")),
        ("team:vision", is_("team", "vision")),
        ('team!:"vision","language"', is_("team", "vision", "language", is_negated=True)),
        ('node~:"a"', Comparison("node", CONTAINS, ("a",))),
        ('node!~:"a"', Comparison("node", CONTAINS, ("a",), is_negated=True)),
        ('node<~:"a"', Comparison("node", Operator.STARTS_WITH, ("a",))),
        ('node!~>:"a"', Comparison("node", Operator.ENDS_WITH, ("a",), is_negated=True)),
        ('team:"a"+kind:"b"', And((is_("team", "a"), is_("kind", "b")))),
        ("team:a kind:b", And((is_("team", "a"), is_("kind", "b")))),
        ('team:"a" | kind:"b"', Or((is_("team", "a"), is_("kind", "b")))),
        (
            '(team:"a"|kind:"b")+member:"c"',
            And((Or((is_("team", "a"), is_("kind", "b"))), is_("member", "c"))),
        ),
        ('((team:"a"))', is_("team", "a")),
        ('offering:"a100/mig-1g.10gb+me"', is_("offering", "a100/mig-1g.10gb+me")),
        ('node:""', is_("node", "")),
        ('label[app]:"x"', is_("label:app", "x")),
        ('label[example.com/app]!:"x"', is_("label:example.com/app", "x", is_negated=True)),
        ('label:"app"', is_("label:app", "", is_negated=True)),
        ('label!:"app"', is_("label:app", "")),
        ('label:"app","stage"', Or((is_("label:app", "", is_negated=True), is_("label:stage", "", is_negated=True)))),
        ('label!:"app","stage"', And((is_("label:app", ""), is_("label:stage", "")))),
    ],
)
def test_filters(text, found):
    assert parse(text) == found


@pytest.mark.parametrize(
    ("text", "column", "why"),
    [
        ("team", 5, "It ends"),
        ("team:", 6, "It ends"),
        ('team:"x"+', 10, "It ends"),
        ('(team:"x"', 10, "It ends"),
        ('pod:"x"', 1, "'pod' is not a valid key"),
        ('team:"x"+pod:"y"', 10, "'pod' is not a valid key"),
        ('team:"x', 6, "cannot be here"),
        ('+team:"x"', 1, "cannot be here"),
        ('team="x"', 5, "cannot be here"),
        ('team:"x",+kind:"y"', 10, "cannot be here"),
        ('team:"x")', 9, "cannot be here"),
        ('team:"x"|kind:"y"+node:"z"', 18, "mixed"),
        ('team:"x"+kind:"y"|node:"z"', 18, "mixed"),
        ('label~:"x"', 6, "compared by : and !: alone"),
        ('label:"-x"', 6, "'-x' is not a valid label key"),
        ('team[x]:"x"', 1, "Only label"),
        ('label[-]:"x"', 7, "'-' is not a valid label key"),
        ("label[x' OR ''=']:\"x\"", 7, "is not a valid label key"),
    ],
)
def test_what_is_no_filter_is_answered_with_its_column_and_with_what_works(text, column, why):
    with pytest.raises(Invalid) as caught:
        parse(text)
    (message,) = caught.value.errors["filter"]
    assert message.startswith(f"Column {column}: ")
    assert why in message
    assert "Keys: department, team" in message


def test_a_filter_has_a_greatest_length():
    with pytest.raises(Invalid):
        parse("(" * (MAX_LENGTH + 1))
    nested = "(kind:x|(kind:y+" * 90
    assert isinstance(parse(f"{nested}kind:z{')' * 180}"), Or)


@given(st.text(alphabet='team:"+|(),!~<>[] lb\\x', max_size=40))
def test_any_text_is_a_filter_or_an_error(text):
    try:
        parse(text)
    except Invalid as error:
        assert list(error.errors) == ["filter"]


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        (EVERYTHING, True),
        (is_("cluster", "a"), True),
        (is_("cluster", "b"), False),
        (is_("cluster", "b", is_negated=True), True),
        (is_("team", "nobody"), True),
        (And((is_("cluster", "b"), is_("team", "x"))), False),
        (Or((is_("cluster", "b"), is_("team", "x"))), True),
        (Comparison("cluster", CONTAINS, ()), False),
    ],
)
def test_a_filter_may_keep_what_its_known_values_do_not_rule_out(where: Filter, kept: bool):
    assert may_keep(where, {"cluster": "a"}) is kept


def test_unknown_is_the_empty_value():
    assert may_keep(is_("node", "__unallocated__"), {"node": ""})
