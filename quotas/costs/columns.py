"""The keys by which costs are grouped and filtered, as columns of the ledger and of its roll-ups."""

from collections.abc import Iterable, Iterator
from typing import Any

from portal.core import labels
from portal.core.errors import Invalid
from quotas.costs.filters import And, Comparison, Filter, Operator, Or, stored

KEYS = (
    *("department", "team", "project", "member", "namespace"),
    *("flavor", "offering", "kind", "allocation", "cluster", "node"),
)
ALL = "all"
"""Instead of keys: everything in one row."""
LABEL = "label"
LABEL_PREFIX = f"{LABEL}:"
"""With the key of a label after it, it is a key too."""
SHARED = {"department", "team", "project", "flavor", "offering", "cluster"}
"""Keys by which hours and days are added up. For others the hours of each account are read."""

_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\%_"})
_PATTERNS = {Operator.CONTAINS: "%{}%", Operator.STARTS_WITH: "{}%", Operator.ENDS_WITH: "%{}"}


def label_key(name: str) -> str:
    """Return the key of costs that is the label with this key."""
    return LABEL_PREFIX + name


def check(field: str, keys: Iterable[str]) -> None:
    """Raise Invalid for the parameter ``field`` if one of these is no key."""
    if unknown := sorted(key for key in keys if not is_key(key)):
        words = f"Use any of {', '.join(KEYS)} and {LABEL_PREFIX}<key>."
        raise Invalid({field: [f"{', '.join(unknown)} cannot be used. {words}"]})


def grouped_by(aggregate: Iterable[str]) -> list[str]:
    """Return the keys to group by, each once. Raises Invalid if one is none."""
    keys = list(dict.fromkeys(aggregate))
    if keys == [ALL]:
        return []
    check("aggregate", keys)
    return keys


def is_key(key: str) -> bool:
    """Return whether costs are grouped by this key."""
    return key in KEYS or (key.startswith(LABEL_PREFIX) and labels.is_key(key.removeprefix(LABEL_PREFIX)))


def column(key: str) -> str:
    """Return the column of a key in the table ``total``."""
    if not is_key(key):
        raise ValueError(f"{key!r} is not a key of the ledger")
    if key.startswith(LABEL_PREFIX):  # no such key has a quote or a per cent sign
        return f"coalesce(total.labels ->> '{key.removeprefix(LABEL_PREFIX)}', '')"
    return "total.holder_id::text" if key == "allocation" else f"total.{key}"


def condition(where: Filter) -> tuple[str, dict[str, Any]]:
    """Return the condition of SQL that a filter is, and its parameters."""
    parameters: dict[str, Any] = {}
    return "".join(_words(where, parameters)), parameters


def _words(where: Filter, parameters: dict[str, Any]) -> Iterator[str]:
    if isinstance(where, Comparison):
        yield _comparison(where, parameters)
        return
    if not where.parts:
        yield "TRUE" if isinstance(where, And) else "FALSE"
        return
    separator = " OR " if isinstance(where, Or) else " AND "
    yield "("
    for number, part in enumerate(where.parts):
        yield separator * (number > 0)
        yield from _words(part, parameters)
    yield ")"


def _comparison(where: Comparison, parameters: dict[str, Any]) -> str:
    name = f"filter_{len(parameters)}"
    form, values = _PATTERNS.get(where.operator), list(stored(where))
    parameters[name] = values if form is None else [form.format(value.translate(_SPECIAL)) for value in values]
    compared = f"{column(where.key)} {'=' if form is None else 'LIKE'} ANY(%({name})s)"
    return f"NOT {compared}" if where.is_negated else compared
