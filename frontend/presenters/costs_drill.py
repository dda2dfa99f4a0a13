"""Where a row of costs leads: to its parts, and at last to the intervals of an allocation."""

from collections.abc import Sequence

from frontend.presenters.costs_address import CostsAddress
from frontend.presenters.costs_filters import fixed_keys, narrowed
from frontend.presenters.costs_names import allocation_url
from quotas.costs.cost_rows import CostRow
from quotas.costs.filters import Filter
from quotas.costs.fleet_costs import IDLE

LEVELS = ("department", "team", "project", "member", "allocation")
PARTS = {"cluster": "flavor", "flavor": "offering", "kind": "offering", "namespace": "member", "node": "allocation"}
"""The next key after one that is no level."""


def row_url(row: CostRow, where: Filter, address: CostsAddress) -> str:
    """Return the address of the parts of a row; empty if it has none, or if no filter can name it."""
    if url := allocation_url(row):
        return url
    if not row.properties or IDLE in (row.name, *row.properties.values()):
        return ""
    try:
        filter_ = narrowed(where, list(row.properties.items()))
    except ValueError:  # a quotation mark in a name
        return ""
    return address.page(aggregate=next_key(list(row.properties), fixed_keys(where)), filter=filter_)


def next_key(keys: Sequence[str], fixed: set[str]) -> str:
    """Return the key that splits a row of these keys further, when others have one value already."""
    known = fixed | set(keys)
    if len(keys) == 1 and keys[0] in PARTS and PARTS[keys[0]] not in known:
        return PARTS[keys[0]]
    deepest = max((LEVELS.index(key) for key in known if key in LEVELS), default=0)
    return LEVELS[min(deepest + 1, len(LEVELS) - 1)]
