"""How quickly intervals are recorded, beside an INSERT of the same rows in batches, and rolled up.

What is recorded begins now, as almost always: an interval that began earlier marks each hour since, to be rolled up
again, so one that began a year ago takes as long as 100 others.
"""

import gc
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from time import perf_counter, process_time
from typing import Any
from uuid import uuid4

from django.db import transaction

from bench.usage_year import execute
from portal.core import clock
from portal.core.models import AppendOnly
from quotas.costs import rollups
from quotas.metering import capacity, foreign
from quotas.metering import services as metering
from quotas.metering.foreign import Start, Use
from quotas.metering.hours import HOUR
from quotas.metering.models import AccountHour, CapacityInterval, ForeignUse, UsageInterval
from quotas.metering.services import Begin
from quotas.metering.units import GPU, RESOURCE, FoundUnit, Unit, Value
from tests.support.clusters import LOCAL
from tests.support.quotas import attribution

BATCH = 1000
SEEN = {"kind": "bench"}
Record = Callable[[], object]
"""Records BATCH intervals that are prepared."""
AT = datetime(2025, 12, 1, tzinfo=UTC)
PER_SECOND, GPUS, PER_GPU = 200, 800, 90
"""Each GPU is held so often in the hour that is rolled up: 72,000 intervals, a tenth of what PER_SECOND makes."""

_HOLDS = """
    INSERT INTO metering_usageinterval (
        key, holder_id, slot, start, "end", estimated_start, estimated_end, gpu_share_numerator, gpu_share_denominator,
        count, unused, overtime, uncharged, offering, flavor, kind, cluster, node, device_uuid, department, team,
        project, member, namespace, source_start, source_end, recorded_at)
    SELECT gen_random_uuid(), gen_random_uuid(), 'local/bench-' || gpu / 8 || '/gpu-' || gpu, begins,
           begins + interval '30 seconds', false, false, 1, 1, 1, false, false, false, 'h100/whole', 'h100', 'whole',
           'local', 'bench-' || gpu / 8, '', 'research', 'team-' || gpu %% 40, 'project-' || gpu %% 200,
           'member-' || gpu, 'project-' || gpu %% 200, '{}', '{}', begins
    FROM generate_series(0, %(gpus)s - 1) AS gpu, generate_series(0, %(per_gpu)s - 1) AS n
    CROSS JOIN LATERAL (SELECT %(hour)s::timestamptz + n * (interval '1 hour' / %(per_gpu)s) AS begins) AS time
"""


def measure() -> dict[str, Any]:
    """Return intervals a second, and how long an hour takes to roll up; what is recorded is taken back."""
    with transaction.atomic():
        found = {
            "usage": _beside_insert(UsageInterval, _usage),
            "capacity": _beside_insert(CapacityInterval, _capacity),
            "foreign use": _beside_insert(ForeignUse, _foreign_use),
        }
        transaction.set_rollback(True)
    with transaction.atomic():
        rolled_up = _roll_up()
        transaction.set_rollback(True)
    return {"recorded": found, "rolled_up": rolled_up}


def _usage(name: str) -> Record:
    at = clock.now()
    begins = [Begin(uuid4(), uuid4(), f"{LOCAL}/{name}/{n}", at, attribution(), 1, SEEN) for n in range(BATCH)]
    return lambda: metering.open_intervals(begins)


def _capacity(name: str) -> Record:
    units = {Unit(f"{name}-{number // 8}", GPU, f"gpu-{number}"): FoundUnit(1, 1) for number in range(BATCH)}
    nodes = {unit.node: SEEN for unit in units}
    return lambda: capacity.record(LOCAL, nodes, lambda _: units, clock.now())


def _foreign_use(name: str) -> Record:
    def use(number: int) -> Use:
        uid, node = str(uuid4()), f"{name}-{number // 8}"
        return Use(f"{LOCAL}/{uid}", node, RESOURCE, "nvidia.com/gpu", 1, "Pod", "trainer", uid, "elsewhere")

    at = clock.now()
    starts = [Start(use(number), at, 1, estimated=False) for number in range(BATCH)]
    return lambda: foreign.begin(LOCAL, starts)


def _beside_insert(model: type[AppendOnly], prepare: Callable[[str], Record], rounds: int = 5) -> dict[str, float]:
    """Return intervals a second: recorded, and the same rows inserted in one statement."""
    ours, insert = [], []
    for number in range(rounds + 1):
        before = set(model._default_manager.values_list("pk", flat=True))
        ours.append(_seconds(prepare(f"bench-{number}")))
        rows = list(model._default_manager.exclude(pk__in=before))
        model._default_manager.filter(pk__in=[row.pk for row in rows]).delete()
        insert.append(_seconds(lambda rows=rows: model._default_manager.bulk_create(rows)))  # type: ignore[misc]
    per_second = BATCH / _middle(ours[1:]), BATCH / _middle(insert[1:])
    return {
        "recorded_per_s": round(per_second[0]),
        "inserted_per_s": round(per_second[1]),
        "ratio": round(per_second[0] / per_second[1], 2),
    }


def _roll_up() -> dict[str, float]:
    """Return how long the roll-up of an hour takes, and which part of an hour the intervals of one at PER_SECOND do."""
    units = {Unit(f"bench-{number // 8}", GPU, f"gpu-{number}"): FoundUnit(1, 1) for number in range(GPUS)}
    capacity.record(LOCAL, {unit.node: SEEN for unit in units}, lambda _: units, AT)
    values = dict.fromkeys(units, Value("h100", attribution().gpu_share, True))
    capacity.add_values(LOCAL, capacity.open_units(LOCAL), values)
    execute(_HOLDS, {"hour": AT, "gpus": GPUS, "per_gpu": PER_GPU})
    start, processor = perf_counter(), process_time()
    rollups.roll_up(LOCAL, AT, AT + HOUR)
    seconds, processor = perf_counter() - start, process_time() - processor
    intervals = GPUS * PER_GPU
    return {
        "intervals": intervals,
        "rows": AccountHour.objects.filter(start=AT).count(),
        "seconds": round(seconds, 1),
        "processor_s": round(processor, 1),
        "per_s": round(intervals / seconds),
        "part_of_hour": round(PER_SECOND * seconds / intervals, 3),
    }


def _seconds(call: Callable[[], object]) -> float:
    """Return how long the call takes. As with timeit no garbage is collected meanwhile: it may be the other side's."""
    gc.collect()
    gc.disable()
    try:
        start = perf_counter()
        call()
        return perf_counter() - start
    finally:
        gc.enable()


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]
