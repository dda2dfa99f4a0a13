"""The filter grammar of `/costs`: `team:"vision","language"+(kind!:"shared"|label[stage]:"prod")`.

OpenCost's filter grammar, version 2 (core/pkg/filter/ast/parser.go):

    filter     := element (('+' | '|') element)*      element := comparison | '(' filter ')'
    comparison := key operator value (',' value)*     key := field | field '[' name ']'
    operator   := ':' | '~:' | '<~:' | '~>:', each also with '!' before it

`+` is "and", `|` is "or", and a comma is "or" between values; `+` and `|` are not mixed without parentheses. Two things
are also taken: a value without quotes, if it has none of `"+|,()` and no space, and a space for a `+`, since that is
what a `+` in a URL means. `label:"app"` keeps what has the label, whatever its value.
"""

from collections.abc import Collection
from functools import cache
from typing import Any, NoReturn

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from portal.core import labels
from portal.core.errors import Invalid
from quotas.costs.columns import KEYS, LABEL, LABEL_PREFIX, label_key
from quotas.costs.filters import EVERYTHING, And, Comparison, Filter, Operator, Or

MAX_LENGTH = 2000
GRAMMAR = r"""
    ?start: _element | conjunction | disjunction
    conjunction: _element (_AND _element)+
    disjunction: _element (_OR _element)+
    _element: comparison | _OPEN start _CLOSE
    comparison: key OPERATOR values
    key: FIELD [_OPEN_NAME NAME _CLOSE_NAME]
    values: _value (_COMMA _value)*
    _value: QUOTED | BARE

    FIELD: /[A-Za-z]+/
    NAME: /[^\]]+/
    OPERATOR: /!?(:|~:|<~:|~>:)/
    QUOTED: /"[^"]*"/
    BARE: /[^\s"+|,()]+/
    _OPEN_NAME: "["
    _CLOSE_NAME: "]"
    _OPEN: /\(\s*/
    _CLOSE.2: /\s*\)/
    _COMMA: /\s*,\s*/
    _OR.2: /\s*\|\s*/
    _AND: /\s*\+\s*|\s+/
"""
WORDS = {
    "FIELD": "a key",
    "OPERATOR": "an operator such as : or !:",
    "QUOTED": "a value in quotes",
    "_OPEN_NAME": "[",
    "_CLOSE_NAME": "]",
    "NAME": "the key of a label",
    "_OPEN": "(",
    "_CLOSE": ")",
    "_COMMA": "a comma and another value",
    "_OR": "|",
    "_AND": "+",
}
"""What the terminals are called in errors."""


def parse(text: str) -> Filter:
    """Return the filter that a text writes; of an empty text that which keeps all. Raises Invalid with the column of
    what cannot be read.
    """
    if not text.strip():
        return EVERYTHING
    if len(text) > MAX_LENGTH:
        raise Invalid({"filter": [f"It has {len(text)} characters. Use at most {MAX_LENGTH}."]})
    try:
        found: Filter = _parser().parse(text.rstrip())  # type: ignore[assignment]  # what the transformer makes
    except UnexpectedInput as error:
        _refuse(*_place_of(error, text.rstrip()))
    return found


def text(where: Filter) -> str:
    """Return a text of which `parse` makes this filter. Raises ValueError for a value with a quotation mark, which the
    grammar cannot write.
    """
    match where:
        case Comparison():
            return _comparison_text(where)
        case And():
            return "+".join(map(_element_text, where.parts))
        case Or():
            return "|".join(map(_element_text, where.parts))


def _element_text(part: Filter) -> str:
    return text(part) if isinstance(part, Comparison) else f"({text(part)})"


def _comparison_text(one: Comparison) -> str:
    if any('"' in value for value in one.values):
        raise ValueError("a value has a quotation mark")
    is_label = one.key.startswith(LABEL_PREFIX)
    key = f"{LABEL}[{one.key.removeprefix(LABEL_PREFIX)}]" if is_label else one.key
    values = ",".join(f'"{value}"' for value in one.values)
    return f"{key}{'!' if one.is_negated else ''}{one.operator.value}{values}"


class _Read(Transformer[Token, Filter]):
    """Makes a filter of what is parsed."""

    def conjunction(self, parts: list[Filter]) -> Filter:
        return And(tuple(parts))

    def disjunction(self, parts: list[Filter]) -> Filter:
        return Or(tuple(parts))

    def comparison(self, parts: list[Any]) -> Filter:
        key, operator, values = parts
        is_negated = operator.startswith("!")
        if key == LABEL:
            return _has_label(operator, values, is_negated=is_negated)
        return Comparison(str(key), Operator(operator.removeprefix("!")), values, is_negated=is_negated)

    def key(self, parts: list[Token | None]) -> str:
        field, name = parts
        assert field is not None
        if name is None:
            known = field in KEYS or field == LABEL
            return str(field) if known else _refuse(field.column, f"{str(field)!r} is not a valid key")
        if field != LABEL:
            _refuse(field.column, f"Only {LABEL} has a name in brackets")
        if not labels.is_key(name):
            _refuse(name.column, f"{str(name)!r} is not a valid label key")
        return label_key(str(name))

    def values(self, parts: list[Token]) -> tuple[str, ...]:
        return tuple(part[1:-1] if part.type == "QUOTED" else str(part) for part in parts)


def _has_label(operator: Token, values: tuple[str, ...], *, is_negated: bool) -> Filter:
    """Return what keeps rows that have a label with one of these keys, or none of them."""
    if operator.removeprefix("!") != Operator.EQUALS:
        _refuse(operator.column, f"{LABEL} without brackets is compared by : and !: alone; write {LABEL}[<key>]")
    if wrong := [name for name in values if not labels.is_key(name)]:
        _refuse(operator.column, f"{wrong[0]!r} is not a valid label key")
    parts = tuple(Comparison(label_key(name), Operator.EQUALS, ("",), is_negated=not is_negated) for name in values)
    if len(parts) == 1:
        return parts[0]
    return And(parts) if is_negated else Or(parts)


@cache
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", transformer=_Read(), maybe_placeholders=True)


def _place_of(error: UnexpectedInput, text: str) -> tuple[int, str]:
    """Return the column of an error, and what is wrong there."""
    if isinstance(error, UnexpectedCharacters):
        return error.column, f"{error.char!r} cannot be here; there should be {_expected(error.allowed or ())}"
    assert isinstance(error, UnexpectedToken)
    if error.token.type == "$END":
        return len(text) + 1, f"It ends, and there should be {_expected(error.expected)}"
    if error.token.type in ("_AND", "_OR") and "$END" in error.expected:
        return error.column, "+ and | are mixed; put parentheses around one of them"
    return error.column, f"{str(error.token)[:40]!r} cannot be here; there should be {_expected(error.expected)}"


def _expected(terminals: Collection[str]) -> str:
    return " or ".join(WORDS[name] for name in sorted(terminals) if name in WORDS) or "the end"


def _refuse(column: int | None, why: str) -> NoReturn:
    raise Invalid(
        {
            "filter": [
                f'Column {column}: {why}. Write <key>:"<value>", several values with commas, and join comparisons by + '
                f"(and) or | (or). Operators: :, !:, ~: (contains), <~: (begins with), ~>: (ends with). "
                f"Keys: {', '.join(KEYS)}, {LABEL}[<key>]."
            ]
        }
    )
