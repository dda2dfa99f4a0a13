"""The filter grammar of `/costs`: `team:"vision","language"+kind:"whole"`.

The part of OpenCost's filter grammar (core/pkg/filter/ast/parser.go) that selects rows by equality: `:` equals, a comma
is "or" between values, `+` is "and" between keys. A value without `+`, `,` and `"` needs no quotes.
"""

import re

from portal.core.errors import Invalid
from quotas.costs.ledger import KEYS

_VALUE = r'(?:"[^"]*"|[^",+]+)'
_TERM = re.compile(rf"(?P<key>[a-z]+):(?P<values>{_VALUE}(?:,{_VALUE})*)(?:\+|$)")
_EACH = re.compile(_VALUE)


def parse(text: str) -> dict[str, set[str]]:
    """Return the values to keep, by key; empty for an empty text. Raises Invalid, with an example, for any
    other text.
    """
    kept: dict[str, set[str]] = {}
    place = 0
    while place < len(text):
        term = _TERM.match(text, place)
        if not term or term["key"] not in KEYS or term["key"] in kept or text.endswith("+"):
            raise _invalid(text[place:])
        kept[term["key"]] = {value.strip('"') for value in _EACH.findall(term["values"])}
        place = term.end()
    return kept


def _invalid(rest: str) -> Invalid:
    return Invalid(
        {
            "filter": [
                f'{rest[:80]!r} is not understood. Use <key>:"<value>", several values with commas, several keys '
                f"with +, each key once. Keys: {', '.join(KEYS)}."
            ]
        }
    )
