"""A ledger of usage alone, from before capacity was recorded, becomes this one without loss.

The database is that of ``test_upgrade``, whose ledger is at the last migration before capacity (metering 0004), with
rows of every kind of holder and slot of that time.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest
from django.db import connection, transaction
from pytest_django.plugin import DjangoDbBlocker

from portal.core import clock
from quotas.costs import ledger
from quotas.metering import accounts, balance, capacity, ledger_starts, parts
from quotas.metering.models import BalanceProof, CapacityInterval, ForeignUse, HoldUse, UsageInterval
from quotas.metering.parts import Category
from quotas.metering.units import GPU, RESOURCE, FoundUnit, Unit, Value
from tests.support import upgrade
from tests.support.capacity import SEEN
from tests.support.clusters import LOCAL

COLUMNS = (
    *("key", "holder_id", "slot", "start", '"end"', "estimated_start", "estimated_end"),
    *("gpu_share_numerator", "gpu_share_denominator", "count", "offering", "flavor", "kind", "cluster", "node"),
    *("device_uuid", "department", "team", "project", "member", "namespace", "source_start", "source_end"),
    *("recorded_at", "unused"),
)
HOLDER = "00000000-0000-0000-0000-00000000000"


def at(hour: float) -> datetime:
    return datetime(2026, 11, 23, int(hour), int(hour % 1 * 60), tzinfo=UTC)


def row(number: int, slot: str, start: float, end: float | None, share: str = "1/1", **values: object) -> str:
    """Return the INSERT of an interval of team vision; by default it is of one whole l40s of an allocation of ada's."""
    numerator, denominator = share.split("/")
    found = {
        "key": f"{HOLDER}{number}",
        "holder_id": f"{HOLDER}{number}",
        "slot": f"{LOCAL}/{slot}",
        "start": at(start).isoformat(),
        '"end"': at(end).isoformat() if end else None,
        "estimated_start": False,
        "estimated_end": False,
        "gpu_share_numerator": numerator,
        "gpu_share_denominator": denominator,
        "count": 1,
        "offering": "l40s/whole",
        "flavor": "l40s",
        "kind": "whole",
        "cluster": LOCAL,
        "node": "",
        "device_uuid": "",
        "department": "research",
        "team": "vision",
        "project": "vision-train",
        "member": "ada",
        "namespace": "vision-train",
        "source_start": '{"kind": "test"}',
        "source_end": '{"kind": "test"}' if end else None,
        "recorded_at": at(start).isoformat(),
        "unused": False,
    } | values
    texts = ("NULL" if found[name] is None else f"'{found[name]}'" for name in COLUMNS)
    return f"INSERT INTO public.metering_usageinterval ({', '.join(COLUMNS)}) VALUES ({', '.join(texts)});"


H100 = {"offering": "h100/whole", "flavor": "h100", "node": "h100-0", "device_uuid": "GPU-0"}
MIG = {**H100, "offering": "h100/mig-1g.10gb", "kind": "mig"}
ROWS = (
    row(1, "h100-0/gpu-0", 6, 8.5, **H100),
    row(2, "h100-0/gpu-1-mig-1g10gb-19-0", 7, None, "1/7", **MIG),
    row(3, "h100-0/gpu-2/share-a", 7.25, 9, "1/4", **H100, estimated_end=True),
    row(4, "pod:9f/nvidia.com/gpu", 6.5, 7.75, member="", node="l40s-0", count=2),
    row(5, "job:9f/l40s/nvidia.com/gpu", 6, 8, member="", count=3, unused=True, estimated_start=True),
    row(6, "another/l40s", 9, 9, count=4),
)


COPY = "CREATE TABLE public.usage_before AS SELECT * FROM public.metering_usageinterval;"


@pytest.fixture(scope="module")
def upgraded(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Let Django use the migrated database, which has a copy of the rows of before."""
    with django_db_blocker.unblock(), upgrade.upgraded(upgrade.BEFORE_TIME_HELD, *ROWS, COPY):
        yield


@pytest.fixture(autouse=True)
def at_noon(upgraded: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Freeze the clock; what a test writes is undone."""
    with django_db_blocker.unblock(), transaction.atomic(), clock.frozen(at(12.5)):
        yield
        transaction.set_rollback(True)


def rows_of(table: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(COLUMNS)} FROM {table} ORDER BY key")
        return cursor.fetchall()


def record_capacity() -> None:
    """Record from 10:30 on two l40s and a h100, as the watcher and the catalogue do."""
    units = {
        Unit("l40s-0", RESOURCE, "nvidia.com/gpu"): FoundUnit(2, 2),
        Unit("h100-0", GPU, "gpu-1"): FoundUnit(1, 1),
    }
    capacity.record(LOCAL, {unit.node: SEEN for unit in units}, lambda before: units, at(10.5))
    values = {unit: Value(unit.node.partition("-")[0], Fraction(1), offered=True) for unit in units}
    capacity.add_values(LOCAL, capacity.open_units(LOCAL), values)


def amounts(start: float, end: float) -> dict[str, dict[Category, Fraction]]:
    """Return the GPU-hours by account and category, without those of zero."""
    found = {}
    for key, account in accounts.read(at(start), at(end)).items():
        hours = parts.gpu_hours(parts.split(account, at(start), at(end)))
        assert sum(hours.values()) == parts.capacity_hours(account, at(start), at(end))
        found[f"{key.node}/{key.name}" if key.node else key.flavor] = {
            category: amount for category, amount in hours.items() if amount
        }
    return found


def test_every_row_of_usage_is_as_it_was() -> None:
    before = rows_of("usage_before")
    assert len(before) == len(ROWS) + 1
    assert rows_of("metering_usageinterval") == before


def test_nothing_is_made_up_of_what_was_not_recorded() -> None:
    for model in (CapacityInterval, ForeignUse, BalanceProof):
        assert not model.objects.exists()


def test_of_an_allocation_that_is_held_it_is_known_from_then_on_whether_it_has_pods() -> None:
    held = UsageInterval.objects.filter(end=None).exclude(member="")
    rows = HoldUse.objects.all()
    assert sorted(row.holder_id for row in rows) == sorted(held.values_list("holder_id", flat=True))
    assert [row.end for row in rows] == [row.start for row in rows]


def test_before_capacity_was_recorded_there_is_as_much_as_was_held_and_nothing_idle() -> None:
    expected = {
        "h100-0/gpu-0": {Category.HELD: Fraction(5, 2)},
        "h100-0/gpu-1": {Category.HELD: Fraction(3, 7)},
        "h100-0/gpu-2": {Category.HELD: Fraction(7, 16)},
        "l40s": {Category.HELD: 2 * Fraction(5, 4) + 3 * 2},
    }
    assert amounts(6, 10) == expected
    record_capacity()
    assert amounts(6, 10) == expected


def test_from_then_on_there_is_what_was_recorded() -> None:
    record_capacity()
    assert amounts(10, 11) == {
        "h100-0/gpu-1": {Category.HELD: Fraction(1, 7), Category.IDLE: Fraction(3, 7)},
        "l40s": {Category.IDLE: 1},
    }


def test_every_hour_is_balanced_before_and_after_capacity_is_recorded() -> None:
    for _ in range(2):
        for hour in range(6, 13):
            proved = balance.of_hour(LOCAL, at(hour))
            assert not proved.failures
            assert proved.capacity == sum(proved.parts.values())
        record_capacity()


def test_the_proof_begins_with_the_first_row_of_usage() -> None:
    assert ledger_starts.first_hours() == {LOCAL: at(6)}


def test_the_bill_of_before_is_the_same() -> None:
    """By SQL on the rows of before: units times hours, by team and flavor."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT flavor, sum(count::numeric * gpu_share_numerator / gpu_share_denominator * extract(epoch FROM "
            """least("end", %s) - start) / 3600) FROM usage_before GROUP BY flavor ORDER BY flavor""",
            [at(12.5)],
        )
        expected = {(flavor,): round(float(hours), 9) for flavor, hours in cursor.fetchall()}
    found = ledger.sums([at(0), at(23)], ["flavor"], {}, at(12.5))
    assert {one.names: round(float(one.usage.gpu_hours), 9) for one in found} == expected
    record_capacity()
    assert ledger.sums([at(0), at(23)], ["flavor"], {}, at(12.5)) == found
