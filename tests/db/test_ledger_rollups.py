"""Which hours are rolled up and when, that those which change are proved anew, and the command that rebuilds all."""

from collections.abc import Iterator
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db.models import F

from allocations import tasks
from allocations.cluster.kinds import KINDS
from allocations.reconcile.metering import balance_proof, ledger_rollups
from allocations.reconcile.mirror_writer import record_sync
from portal.core import clock
from quotas.metering import capacity
from quotas.metering.hours import HOUR
from quotas.metering.models import AccountHour, BalanceProof, DirtyHour, HourTotal, RolledUpHour
from tests.support.capacity import RESOURCES, SEEN, record
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.quotas import T0, hour, used

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def at_ten_past_five(db: None) -> Iterator[None]:
    """Record capacity from the first hour on and a hold; the clock is frozen in the sixth hour."""
    fleet()
    with clock.frozen(hour(0.5)):
        record(RESOURCES, 0)
        used(hour(0.5), hour(4.5), 2)
    with clock.frozen(hour(5) + timedelta(minutes=10)):
        yield


def watched(until: float, *kinds: str) -> None:
    record_sync(LOCAL, *((KINDS[kind], 1, hour(until)) for kind in kinds or KINDS))


def rolled_up() -> list[int]:
    return [(row.hour - T0) // HOUR for row in RolledUpHour.objects.order_by("hour")]


def test_hours_are_rolled_up_once_every_kind_has_passed_them() -> None:
    watched(9)
    watched(3.9, "Pod")
    assert ledger_rollups.roll_up_due() == 3
    assert rolled_up() == [0, 1, 2]
    assert ledger_rollups.roll_up_due() == 0


def test_an_hour_waits_until_what_is_being_written_is_committed() -> None:
    watched(9)
    with clock.frozen(hour(5) + timedelta(minutes=4)):
        tasks.roll_up()
    assert rolled_up() == [0, 1, 2, 3]
    tasks.roll_up()
    assert rolled_up() == [0, 1, 2, 3, 4]


def test_nothing_is_rolled_up_before_the_watcher_has_listed_all_kinds() -> None:
    watched(9, "Pod")
    assert ledger_rollups.roll_up_due() == 0


def test_a_run_rolls_up_the_newest_hours_first(monkeypatch: pytest.MonkeyPatch) -> None:
    watched(9)
    monkeypatch.setattr(ledger_rollups, "MAX_HOURS", 2)
    assert ledger_rollups.roll_up_due() == 2
    assert rolled_up() == [3, 4]
    ledger_rollups.roll_up_due()
    assert rolled_up() == [1, 2, 3, 4]


def test_an_hour_that_changes_is_rolled_up_and_proved_anew() -> None:
    watched(9)
    ledger_rollups.roll_up_due()
    balance_proof.prove_due()
    assert BalanceProof.objects.get(hour=hour(2)).held == 2
    used(hour(2), hour(3))
    assert ledger_rollups.roll_up_due() == 3
    assert not DirtyHour.objects.exists()
    assert BalanceProof.objects.get(hour=hour(2)).held == 3
    held = HourTotal.objects.filter(start=hour(2), category="held").values_list("amount", flat=True)
    assert sum(held) == 3 * 3_600_000_000


def test_an_hour_that_was_not_proved_yet_is_left_to_the_proof() -> None:
    watched(9)
    ledger_rollups.roll_up_due()
    used(hour(2), hour(3))
    ledger_rollups.roll_up_due()
    assert not BalanceProof.objects.exists()


def failures(at: float) -> list[tuple[str, str, str, str]]:
    row = BalanceProof.objects.get(hour=hour(at))
    return [(one["check"], one["name"], one["expected"], one["found"]) for one in row.failures]


def test_a_roll_up_that_differs_from_the_ledger_is_not_balanced() -> None:
    watched(9)
    ledger_rollups.roll_up_due()
    AccountHour.objects.filter(start=hour(3), category="idle").update(amount=F("amount") - 3_600_000_000)
    AccountHour.objects.filter(start=hour(1)).delete()
    balance_proof.prove_due()
    assert set(BalanceProof.objects.filter(balanced=False).values_list("hour", flat=True)) == {hour(1), hour(3)}
    assert failures(3) == [("rollup_equals_capacity", "nvidia.com/gpu", "8", "7")]
    assert failures(1) == [("rollup_equals_capacity", "nvidia.com/gpu", "8", "0")]


def test_an_hour_that_has_changed_since_is_not_compared_with_its_roll_up() -> None:
    watched(9)
    ledger_rollups.roll_up_due()
    with clock.frozen(hour(3.5)):
        capacity.record(LOCAL, {"l40s-0": SEEN}, lambda before: {}, hour(3.5))
    DirtyHour.objects.create(cluster_id=LOCAL, hour=hour(3))
    balance_proof.prove_due()
    assert set(BalanceProof.objects.filter(balanced=False).values_list("hour", flat=True)) == {hour(4)}


def test_the_hourly_proof_rolls_up_first() -> None:
    watched(9)
    tasks.prove_balance()
    assert rolled_up() == [0, 1, 2, 3, 4]
    assert BalanceProof.objects.filter(balanced=True).count() == 5


def test_the_command_rebuilds_the_whole_past_or_a_part_of_it() -> None:
    watched(9)
    out = StringIO()
    call_command("rebuild_rollups", "--from", "2026-11-02T02:00:00Z", stdout=out)
    assert rolled_up() == [2, 3, 4]
    HourTotal.objects.all().delete()
    call_command("rebuild_rollups", stdout=out)
    assert rolled_up() == [0, 1, 2, 3, 4]
    assert HourTotal.objects.filter(category="held").count() == 5
    assert out.getvalue() == "local: 3 hours rolled up.\nlocal: 5 hours rolled up.\n"
