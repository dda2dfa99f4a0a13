"""The values that rows of costs have by key: as suggestions of a filter, and as the filter that keeps them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice

from frontend.presenters.costs_names import key_word
from quotas.costs.columns import LABEL_PREFIX
from quotas.costs.cost_rows import CostRow
from quotas.costs.filters import UNALLOCATED, And, Comparison, Filter, Operator
from quotas.costs.fleet_costs import IDLE

MAX_SUGGESTIONS = 50


def suggestions(rows: Iterable[CostRow]) -> dict[str, str]:
    """Return values that the form's filter takes, of the first rows, each with what its key is called."""
    found = {
        f"{key.removeprefix(LABEL_PREFIX)}={value}" if key.startswith(LABEL_PREFIX) else value: key_word(key)
        for row in rows
        for key, value in row.properties.items()
        if key != "allocation" and value not in ("", IDLE, UNALLOCATED) and not {*value} & {'"', ","}
    }
    return dict(islice(found.items(), MAX_SUGGESTIONS))


def of_rows(rows: Sequence[CostRow]) -> Filter:
    """Return a filter by the keys of the rows that keeps them all. With several keys it may keep others too."""
    values: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for key, value in row.properties.items():
            values[key].add(value)
    return And(tuple(Comparison(key, Operator.EQUALS, frozenset(found)) for key, found in values.items()))
