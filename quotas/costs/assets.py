"""What each GPU, or each node, was in a window: the parts of its capacity, and who held it.

For platform staff: it tells what all teams together use. A resource of the device plugin is counted over the nodes of
its flavor, since Kubernetes names neither the GPU nor, until a pod runs, the node.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import UUID

from portal.core.reading import read_rows
from portal.tenants import access
from portal.tenants.access import Person
from quotas.costs import filters, rollups
from quotas.costs.filters import Filter
from quotas.costs.rating import RatedUsage, Window, rated
from quotas.metering import ledger_starts, rolled_up
from quotas.metering.models import CapacityInterval
from quotas.metering.parts import MICROSECONDS_PER_HOUR, Category
from quotas.metering.rolled_up import Rest

KEYS = ("cluster", "flavor", "node")
"""The keys by which assets are filtered."""
_QUERY = """
    {pieces}
    SELECT total.cluster, total.flavor, CASE WHEN total.is_gpu THEN total.node ELSE '' END AS node, total.name,
           total.category, total.holder_id, total.team, total.project, total.price, total.denominator,
           sum(total.amount) AS amount, NULL::timestamptz AS gap_start, NULL::timestamptz AS gap_end
    FROM {accounts}
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, total.is_gpu
    UNION ALL
    SELECT cluster, '', '', '', '', NULL, '', '', NULL, NULL, NULL, t0, t1 FROM rest
"""


class AssetKind(StrEnum):
    """What an asset is: a GPU that DRA names, a node of such GPUs, or a resource of the device plugin."""

    GPU = "gpu"
    NODE = "node"
    RESOURCE = "resource"


class AssetKey(NamedTuple):
    """``node`` and ``name`` are empty where they are not known, ``name`` also of a node."""

    cluster: str
    kind: AssetKind
    flavor: str
    node: str
    name: str


class Holder(NamedTuple):
    """Who held a part: an allocation or a Job, of a team and project."""

    id: UUID
    team: str
    project: str


@dataclass
class Asset:
    """The GPU-hours of an asset by category, and what each holder used of it. Of a time before the capacity of its
    cluster was recorded only what was held is known. ``uuid`` is empty until `read_uuids`.
    """

    key: AssetKey
    is_capacity_known: bool
    parts: dict[Category, RatedUsage] = field(default_factory=lambda: defaultdict(RatedUsage))
    holders: dict[Holder, RatedUsage] = field(default_factory=lambda: defaultdict(RatedUsage))
    uuid: str = ""

    @property
    def capacity(self) -> Fraction:
        return sum((part.gpu_hours for part in self.parts.values()), Fraction(0))

    @property
    def occupancy(self) -> Fraction | None:
        """Return which part of the capacity was held; None without capacity, or if it is not known."""
        is_known = self.is_capacity_known and self.capacity
        return self.parts[Category.HELD].gpu_hours / self.capacity if is_known else None


class _Part(NamedTuple):
    key: AssetKey
    category: Category
    holder: Holder | None
    usage: RatedUsage


def in_window(user: Person, window: Window, where: Filter, *, by_node: bool, now: datetime) -> list[Asset] | None:
    """Return the assets until `now` by their keys; None if too much of the window is not rolled up. What is rolled up,
    and what is not, are of one statement, so that nothing is counted twice.

    Raises Forbidden for everybody but platform staff.
    """
    access.require(user, "platform.view", None)
    edges = [window.start, window.end]
    parts, rest = _rolled_up(edges, now)
    if rolled_up.is_too_long(rest):
        return None
    known = {one for one, at in ledger_starts.capacity_recorded_since().items() if at and at <= window.start}
    found: dict[AssetKey, Asset] = {}
    for part in [*parts, *(part for piece in rest for part in _from_ledger(piece))]:
        key = part.key
        if not filters.may_keep(where, {"cluster": key.cluster, "flavor": key.flavor, "node": key.node}):
            continue
        if by_node and key.kind is AssetKind.GPU:
            key = key._replace(kind=AssetKind.NODE, name="")
        asset = found.setdefault(key, Asset(key, key.cluster in known))
        asset.parts[part.category] += part.usage
        if part.category is Category.HELD and part.holder:
            asset.holders[part.holder] += part.usage
    return [found[key] for key in sorted(found)]


def read_uuids(assets: Iterable[Asset]) -> None:
    """Set the UUIDs of GPUs, as they were recorded last; one query."""
    gpus = {(one.key.cluster, one.key.node, one.key.name): one for one in assets if one.key.kind is AssetKind.GPU}
    rows = CapacityInterval.objects.filter(kind=CapacityInterval.Kind.GPU, node__in={node for _, node, _ in gpus})
    for cluster, node, name, uuid in rows.order_by("start").values_list("cluster", "node", "name", "uuid"):
        if asset := gpus.get((cluster, node, name)):
            asset.uuid = uuid


def _rolled_up(edges: Sequence[datetime], now: datetime) -> tuple[list[_Part], list[Rest]]:
    query = _QUERY.format(pieces=rolled_up.PIECES, accounts=rolled_up.ACCOUNTS)
    rows = read_rows(query, rolled_up.bounds(edges, now, with_days=False))
    parts = [_part(row.cluster, row, row.node) for row in rows if row.gap_start is None]
    return parts, rolled_up.unread(edges, rows)


def _from_ledger(rest: Rest) -> Iterator[_Part]:
    ledger = rollups.read(rest.cluster, rest.start, rest.end)
    for row in rollups.rows(ledger, rollups.split(ledger, rest.start, rest.end), rest.start):
        yield _part(rest.cluster, row, row.node if row.is_gpu else "")


def _part(cluster: str, row: Any, node: str) -> _Part:
    """Return the part in a row of the query, or of ``rollups.rows``; ``node`` is that of a GPU, else empty."""
    hours = Fraction(row.amount) / Fraction(row.denominator) / MICROSECONDS_PER_HOUR
    return _Part(
        key=AssetKey(cluster, AssetKind.GPU if node else AssetKind.RESOURCE, row.flavor, node, row.name),
        category=Category(row.category),
        holder=None if row.holder_id is None else Holder(row.holder_id, row.team, row.project),
        usage=rated(hours, None if row.price is None else Fraction(row.price)),
    )
