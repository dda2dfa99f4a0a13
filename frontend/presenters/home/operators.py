"""What an operator sees first: the use of the fleet, what waits and why, what cannot be used, and what to decide."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from allocations.capacity import pool_use
from allocations.capacity.fleet import Fleet
from allocations.capacity.pool_use import PoolUse
from allocations.capacity.usage import CurrentUsage
from allocations.limits.services import text, unit
from allocations.queues import kueue_state, waiting
from frontend.presenters import fleet, prices
from frontend.presenters.home.leads import WaitingLine, waiting_lines
from portal.tenants import access
from portal.tenants.models import User
from quotas.catalog import faults
from quotas.catalog.faults import Faults

FIRST = 5
"""So many waiting entries, nodes, GPUs and flavors are on the page; the pages behind them have all."""


@dataclass(frozen=True)
class PoolLine:
    """A pool of a flavor. ``meter`` is what is held and used without an allocation, in per cent of the total; all of it
    if that is more than there is, and then ``is_over``.
    """

    flavor: str
    pool: str
    unit: str
    total: int
    held: str
    unmanaged: int
    blocked: int
    left: str
    meter: int
    is_over: bool
    free: str


@dataclass(frozen=True)
class Fault:
    """Something that cannot be used, or of which more is held than there is, its page, and why with what would help."""

    name: str
    url: str
    sentence: str


@dataclass(frozen=True)
class Operations:
    """``faults`` are the first of what cannot be used, ``drift`` is how many of Kueue's ``objects`` differ."""

    pools: Sequence[PoolLine]
    waiting: Sequence[WaitingLine]
    waiting_by_team: Mapping[str, int]
    waiting_more: int
    faults: Sequence[Fault]
    faults_more: int
    proposed: Sequence[tuple[str, int, str]]
    proposed_more: int
    not_priced: Mapping[str, Sequence[str]]
    drift: int
    objects: int

    @property
    def has_blocked(self) -> bool:
        return any(line.blocked for line in self.pools)

    @property
    def waiting_total(self) -> int:
        return sum(self.waiting_by_team.values())


def operations(user: User, capacity: Fleet, usage: CurrentUsage) -> Operations:
    """Return what operators see first; a fixed number of queries for each cluster. Raises Forbidden for who is not
    platform staff.
    """
    teams = access.for_platform(user, access.visible_teams(user))
    queued, found, kueue = waiting.of_teams(teams, FIRST), faults.current(FIRST), kueue_state.objects(user)
    pools = [_pool(one) for one in pool_use.of_fleet(capacity, usage)]
    over = [_more_held(line) for line in pools if line.is_over]
    shown = [*over, *_faults(found)][:FIRST]
    return Operations(
        pools=pools,
        waiting=waiting_lines(queued.first),
        waiting_by_team=queued.by_team,
        waiting_more=queued.total - len(queued.first),
        faults=shown,
        faults_more=len(over) + found.node_count + found.device_count - len(shown),
        proposed=[
            (name, nodes, reverse("admin:catalog_flavor_change", args=[pk])) for pk, name, nodes in found.proposed
        ],
        proposed_more=found.proposed_count - len(found.proposed),
        not_priced=prices.without_price(capacity.index.listed(), capacity.prices),
        drift=sum(bool(one.problem or one.differences) for one in kueue),
        objects=len(kueue),
    )


def _pool(one: PoolUse) -> PoolLine:
    used = one.held + one.unmanaged + one.blocked
    return PoolLine(
        flavor=one.pool.flavor.name,
        pool=one.pool.key,
        unit=unit(one.pool),
        total=one.total,
        held=text(one.held),
        unmanaged=one.unmanaged,
        blocked=one.blocked,
        left=text(one.left),
        meter=min(100, round(100 * used / one.total)) if one.total else 100 if used else 0,
        is_over=one.held > one.total,
        free=f"{one.free_slices} × {one.offering}",
    )


def _more_held(line: PoolLine) -> Fault:
    url = f"{reverse('fleet')}?{urlencode({'flavor': line.flavor})}"
    sentence = (
        f"{line.held} held, {line.total} usable: a node or GPU of these holds is gone, or takes no pods. They stay "
        "charged until they are released."
    )
    return Fault(line.pool, url, sentence)


def _faults(found: Faults) -> Iterable[Fault]:
    for node in found.nodes:
        sentence = node.problem or ("It is not ready, or cordoned." if not node.ready else "It is not offered.")
        yield Fault(node.name, fleet.node_url(node.cluster_id, node.name), sentence)
    for device in found.devices:
        url = f"{fleet.node_url(device.node.cluster_id, device.node.name)}#{device.name}"
        yield Fault(f"{device.node.name} {device.name}", url, "A taint keeps new claims away.")
