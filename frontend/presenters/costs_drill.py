"""Where a row of costs leads: to its parts, and at last to the intervals of an allocation."""

from collections.abc import Sequence
from datetime import UTC
from urllib.parse import urlencode

from django.urls import reverse

from frontend.presenters import strips
from frontend.presenters.costs_address import CostsAddress
from frontend.presenters.costs_filters import fixed_keys, narrowed
from frontend.presenters.costs_names import allocation_url
from quotas.costs.cost_rows import CostRow
from quotas.costs.filters import UNALLOCATED, Filter
from quotas.costs.fleet_costs import IDLE
from quotas.metering.hours import DAY

NO_NAMES = (IDLE, UNALLOCATED)
LEVELS = ("department", "team", "project", "member", "allocation")
PARTS = {"cluster": "flavor", "flavor": "offering", "kind": "offering", "namespace": "member", "node": "allocation"}
"""The next key after one that is no level."""


def row_url(row: CostRow, where: Filter, address: CostsAddress, *, sees_all: bool) -> str:
    """Return the address of the parts of a row; empty if it has none, or if no filter can name it. What nobody held
    leads to the timeline, for those who may see them.
    """
    if url := allocation_url(row):
        return url
    if IDLE in (row.name, *row.properties.values()):
        return _assets_url(row) if sees_all else ""
    if not row.properties:
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


def _assets_url(row: CostRow) -> str:
    """Return the address of the timeline, the most idle first, of the flavor and the node that the row names;
    empty for a longer time than that page shows.
    """
    start, end = (moment.astimezone(UTC) for moment in (row.window.start, row.window.end))
    if end - start > strips.MAX_DAYS * DAY:
        return ""
    named = {key: value for key, value in row.properties.items() if key in ("flavor", "node") and value not in NO_NAMES}
    query = {"window": f"{start:%Y-%m-%dT%H:%M:%SZ},{end:%Y-%m-%dT%H:%M:%SZ}", **named, "sort": "idle"}
    return f"{reverse('cost-assets')}?{urlencode(query)}"
