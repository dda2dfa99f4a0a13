"""A month of costs for journeys through pages: a simulated history, and since then a use that doubled and an idle hold.

The demo's fleet is recorded since four days ago; before, there is a simulated history that begins in the month before.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import uuid4

from allocations.models import Allocation
from demo.simulated_history import past_allocations, writer
from portal.core import clock, heartbeat
from portal.tenants.models import Project, User
from quotas.costs import rollups
from quotas.metering import hold_use, proofs
from quotas.metering.hold_use import Sighting
from quotas.metering.hours import DAY, day_of, hour_of, hours_between
from quotas.metering.models import CapacityInterval
from tests.support import demo_fleet
from tests.support.clusters import LOCAL
from tests.support.pages import ended, held, requested

RECORDED = 4 * DAY
GROWN_GPUS = 8
"""For two days: more GPU hours, of the dearest flavor, than anything that a simulated history holds for a week."""
PROVED = timedelta(hours=24)


class Month(NamedTuple):
    """``grown`` is most of what team vision costs more than before; ``idle`` is held now, and never had a pod."""

    grown: Allocation
    idle: Allocation


def write() -> Month:
    """Write it until now. It has fourteen days at least, and seven of the month before."""
    now = clock.now()
    started = day_of(now) - RECORDED
    demo_fleet.record(started)
    begin = min(started - 14 * DAY, day_of(now).replace(day=1) - 7 * DAY)
    history = writer.write(LOCAL, (started - begin) // DAY)
    assert history
    past_allocations.add(history.allocations)
    hold_use.begin(LOCAL, [uuid4()], Sighting(started, 1, estimated=False))
    grown = _hold("vision-member", "vision-dev", "sweep", _gpus("h100-0", GROWN_GPUS), started + DAY)
    with clock.frozen(started + 3 * DAY):
        ended(grown)
    idle = _hold("language-member", "language-dev", "notebook", _gpus("h100-1", 2), started + 2 * DAY)
    demo_fleet.watched_until(now)
    rollups.roll_up(LOCAL, day_of(now) - 8 * DAY, hour_of(now))
    for hour in hours_between(hour_of(now) - PROVED, hour_of(now)):
        proofs.prove(LOCAL, hour)
    for name in ("worker", "watcher"):
        heartbeat.beat(name)
    return Month(grown, idle)


def _hold(username: str, project: str, name: str, devices: Sequence[tuple[str, str, str]], at: datetime) -> Allocation:
    user, of = User.objects.get(username=username), Project.objects.get(slug=project)
    with clock.frozen(at):
        row = requested(user, of, "h100/whole", len(devices), name=name, hours=120)
        return held(row, devices)


def _gpus(node: str, count: int) -> list[tuple[str, str, str]]:
    """Return GPUs of a node as (node, device, uuid)."""
    rows = CapacityInterval.objects.filter(node=node, kind=CapacityInterval.Kind.GPU, end=None).order_by("name")
    return [(row.node, row.name, row.found.uuid) for row in rows[:count]]
