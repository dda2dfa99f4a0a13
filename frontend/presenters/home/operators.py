"""What an operator sees first: the use of the fleet, what waits and why, what cannot be used, and what to decide."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from urllib.parse import urlencode

from django.urls import reverse

from allocations.capacity import pool_use
from allocations.capacity.fleet import Fleet
from allocations.capacity.pool_use import PoolUse
from allocations.capacity.usage import CurrentUsage
from allocations.cluster.preflight.types import Finding, Status
from allocations.limits.services import text
from allocations.queues import kueue_state, waiting
from frontend.presenters import fleet, model_use, prices
from frontend.presenters.home.counters import Counter, first_of
from frontend.presenters.home.leads import WaitingLine, waiting_lines
from frontend.presenters.model_use import ModelLine
from portal.operations.doctor import collect
from portal.operations.doctor.checks import run_checks
from portal.tenants import access
from portal.tenants.models import User
from quotas.catalog import faults
from quotas.catalog.faults import Faults
from quotas.metering import stranded_gpus
from quotas.metering.stranding import StrandedGpus

FIRST = 5
"""So many waiting entries, nodes, GPUs and flavors are on the page; the pages behind them have all."""


@dataclass(frozen=True)
class Fault:
    """Something that cannot be used, or of which more is held than there is, its page, and why with what would help."""

    name: str
    url: str
    sentence: str


@dataclass(frozen=True)
class Operations:
    """``faults`` are the first of what cannot be used, ``drift`` is how many of Kueue's ``objects`` differ."""

    models: Sequence[ModelLine]
    waiting: Sequence[WaitingLine]
    waiting_by_team: Mapping[str, int]
    waiting_long: Mapping[str, int]
    waiting_more: int
    faults: Sequence[Fault]
    faults_more: int
    stranded: Sequence[StrandedGpus]
    proposed: Sequence[tuple[str, int]]
    proposed_more: int
    not_priced: Mapping[str, Sequence[str]]
    drift: int
    objects: int
    checks: Sequence[Finding]

    @property
    def has_blocked(self) -> bool:
        return any(line.blocked for line in self.models)

    @property
    def to_look_at(self) -> Sequence[Finding]:
        return [one for one in self.checks if one.status is not Status.OK]

    @property
    def waiting_total(self) -> int:
        return sum(self.waiting_by_team.values())


def operations(user: User, capacity: Fleet, usage: CurrentUsage) -> Operations:
    """Return what operators see first; a fixed number of queries for each cluster. Raises Forbidden for who is not
    platform staff.
    """
    teams = access.for_platform(user, access.visible_teams(user))
    queued, found, kueue = waiting.of_teams(teams, FIRST), faults.current(FIRST), kueue_state.objects(user)
    pools = pool_use.of_fleet(capacity, usage)
    over = [_more_held(one) for one in pools if one.held > one.total]
    shown = [*over, *_faults(found)][:FIRST]
    return Operations(
        models=model_use.lines(pools),
        waiting=waiting_lines(queued.first),
        waiting_by_team=queued.by_team,
        waiting_long=queued.long_by_team,
        waiting_more=queued.total - len(queued.first),
        faults=shown,
        faults_more=len(over) + found.node_count + found.device_count - len(shown),
        stranded=stranded_gpus.current(),
        proposed=[(name, nodes) for _, name, nodes in found.proposed],
        proposed_more=found.proposed_count - len(found.proposed),
        not_priced=prices.without_price(capacity.index.listed(), capacity.prices),
        drift=sum(bool(one.problem or one.differences) for one in kueue),
        objects=len(kueue),
        checks=run_checks(collect.facts()),
    )


def _more_held(one: PoolUse) -> Fault:
    url = f"{reverse('fleet')}?{urlencode({'flavor': one.pool.flavor.name})}"
    sentence = (
        f"{text(one.held)} held, {one.total} available: a node or GPU of these holds is gone, or takes no pods. They "
        "stay charged until they are released."
    )
    return Fault(one.pool.key, url, sentence)


def _faults(found: Faults) -> Iterable[Fault]:
    for node in found.nodes:
        sentence = node.problem or ("Not ready, or cordoned." if not node.ready else "Not offered.")
        yield Fault(node.name, fleet.node_url(node.cluster_id, node.name), sentence)
    for device in found.devices:
        url = f"{fleet.node_url(device.node.cluster_id, device.node.name)}#{device.name}"
        yield Fault(f"{device.node.name} {device.name}", url, "A taint keeps new claims away.")


def _unavailable(found: Operations) -> tuple[int, str]:
    return len(found.faults) + found.faults_more, first_of([one.name for one in found.faults])


def _stranded(found: Operations) -> tuple[int | str, str]:
    gpus = sum((one.gpus for one in found.stranded), Fraction(0))
    why = [f"{one.flavor}: {f'offer a {one.profile}' if one.profile else 'no slice fits'}" for one in found.stranded]
    return text(gpus) if gpus else 0, first_of(why)


def _waiting_long(found: Operations) -> tuple[int, str]:
    return sum(found.waiting_long.values()), first_of([f"{team} {count}" for team, count in found.waiting_long.items()])


def _longest_queue(found: Operations) -> str:
    teams = list(found.waiting_long or found.waiting_by_team)
    return reverse("queue", args=[teams[0]]) if teams else "#fleet-waiting"


def _not_priced(found: Operations) -> tuple[int, str]:
    return sum(map(len, found.not_priced.values())), first_of(list(found.not_priced))


def _proposed(found: Operations) -> tuple[int, str]:
    return len(found.proposed) + found.proposed_more, first_of([name for name, _ in found.proposed])


def _unhealthy(found: Operations) -> tuple[int | str, str]:
    bad = [one.check for one in found.checks if one.status is Status.PROBLEM]
    return len(bad), first_of(bad) or "all checks pass"


COUNTERS = (
    Counter("Problems of the portal", "bad", _unhealthy, lambda _: "#portal-health"),
    Counter("Unavailable", "bad", _unavailable, lambda _: f"{reverse('fleet')}?state=attention"),
    Counter("Waiting over 1 h", "warn", _waiting_long, _longest_queue),
    Counter("Stranded GPUs", "warn", _stranded, lambda _: reverse("savings")),
    Counter("Not priced", "warn", _not_priced, lambda _: reverse("prices")),
    Counter("Proposed flavors", "wait", _proposed, lambda _: reverse("flavors")),
)
