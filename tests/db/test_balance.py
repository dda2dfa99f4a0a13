"""The balance of the ledger in an hour: what adds up, and what each check finds in a ledger that was damaged for it."""

from dataclasses import astuple
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import F

from quotas.metering import accounts, balance, parts, proofs
from quotas.metering.balance import Check, Failure
from quotas.metering.models import BalanceProof, CapacityInterval, UsageInterval
from quotas.metering.parts import Category
from quotas.metering.units import FoundUnit
from tests.support.capacity import GPUS, RESOURCES, SEEN, hold_gpu, offer, record, use_gpu_without_allocation
from tests.support.clusters import LOCAL, make_cluster
from tests.support.fleet import fleet
from tests.support.quotas import hour, used
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def catalog(db: None) -> None:
    fleet()


@pytest.fixture
def busy() -> None:
    """Record eight l40s and two h100, of which some are held, unmanaged or on a node that is not ready."""
    record({**RESOURCES, **GPUS}, 0)
    used(hour(-1), hour(0.3), 3)
    used(hour(0.25), None, 2)
    hold_gpu("gpu-0", 0.1, 0.7)
    hold_gpu("gpu-1-mig-1g10gb-19-0", 0.5, 2, gpu_share=Fraction(1, 7))
    use_gpu_without_allocation("gpu-0", 0.7, 0.8)
    record({unit: FoundUnit(1, 0, "node_not_ready") for unit in GPUS}, 0.9)


def failures(at: float = 0) -> list[Failure]:
    return list(balance.of_hour(LOCAL, hour(at)).failures)


def failure(at: float = 0) -> Failure:
    [found] = failures(at)
    return found


def overlapping_copy(row: Any, **changes: Any) -> None:
    """Insert the row once more, as no service does."""
    values = {
        field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields if field.attname != "id"
    }
    type(row).objects.create(**values | changes)


@pytest.mark.usefixtures("busy")
def test_an_hour_of_everything_is_balanced() -> None:
    found = balance.of_hour(LOCAL, hour(0))
    assert found.failures == []
    assert found.accounts == 3
    assert found.capacity == sum(found.parts.values()) == 10
    assert {category for category, amount in found.parts.items() if amount} == {
        *(Category.HELD, Category.UNMANAGED, Category.UNAVAILABLE, Category.IDLE)
    }


@pytest.mark.usefixtures("busy")
def test_hours_of_which_nothing_is_recorded_are_balanced() -> None:
    found = balance.of_hour(LOCAL, hour(-9))
    assert found.accounts == found.capacity == len(found.failures) == 0


def test_an_hour_before_capacity_was_recorded_has_what_was_held() -> None:
    used(hour(-3), hour(0.5), 3)
    hold_gpu("gpu-0-mig-1g10gb-19-0", -1, 1, gpu_share=Fraction(1, 7))
    record({**RESOURCES, **GPUS}, 0.25)
    before, during = balance.of_hour(LOCAL, hour(-2)), balance.of_hour(LOCAL, hour(0))
    assert not before.failures
    assert before.capacity == 3
    assert not during.failures
    assert during.capacity == Fraction(3, 4) + Fraction(1, 28) + Fraction(30, 4)


def test_before_any_capacity_was_recorded_there_is_as_much_as_is_held() -> None:
    used(hour(0), None, 3)
    assert failures() == []
    assert balance.of_hour(LOCAL, hour(1)).capacity == 3


def test_a_microsecond_of_capacity_that_the_parts_lack_is_found() -> None:
    record(RESOURCES, 0)
    split = parts.split

    def short(*args: Any) -> list[parts.Part]:
        [part] = split(*args)
        return [parts.Part(part.start, part.end - timedelta(microseconds=1), part.category, part.gpus)]

    with patch.object(parts, "split", short):
        found = failure()
    assert astuple(found) == (
        *(Check.PARTS_EQUAL_CAPACITY, LOCAL, "l40s", "", "nvidia.com/gpu", "8", "7.9999999978"),
        "The parts of nvidia.com/gpu of flavor l40s add up to 7.9999999978 GPU-hours; its capacity was 8.",
    )


def test_capacity_that_no_account_has_is_found() -> None:
    record(RESOURCES, 0)
    with patch.object(accounts, "read", return_value={}):
        found = failure()
    assert (found.check, found.expected, found.found) == (Check.PARTS_EQUAL_CAPACITY, "8", "0")


def test_a_gpu_that_two_holds_are_charged_for_is_found() -> None:
    record(GPUS, 0)
    hold_gpu("gpu-0", 0, 0.5)
    hold_gpu("gpu-0-mig-1g10gb-19-0", 0.25, 2, gpu_share=Fraction(1, 7))
    assert astuple(failure()) == (
        *(Check.USES_FIT_GPU, LOCAL, "h100", "h100-0", "gpu-0", "at most 1", "8/7"),
        "Uses of gpu-0 on node h100-0 add up to 8/7 GPUs at 2026-11-02 00:15:00 UTC; it is one GPU.",
    )
    assert failures(1) == []


def test_a_gpu_that_is_held_and_used_without_an_allocation_is_found() -> None:
    record(GPUS, 0)
    hold_gpu("gpu-0-mig-1g10gb-19-0", 0, 2, gpu_share=Fraction(1, 7))
    use_gpu_without_allocation("gpu-0", 0.5, 0.6)
    assert failure().check == Check.USES_FIT_GPU


def test_uses_that_follow_each_other_on_a_gpu_fit() -> None:
    record(GPUS, 0)
    hold_gpu("gpu-0", 0, 0.5)
    use_gpu_without_allocation("gpu-0", 0.5, 0.6)
    hold_gpu("gpu-0", 0.6, 0.7)
    assert failures() == []


@pytest.mark.parametrize("is_foreign_first", [True, False])
def test_a_mixed_layout_with_an_unmanaged_slice_fits(is_foreign_first: bool) -> None:
    """4g and 3g take 4/7 and 1/2, more than the GPU; what is unmanaged is charged what is left (ADR 12)."""
    record(GPUS, 0)
    offer("4g.40gb", Fraction(4, 7))
    use_gpu_without_allocation("gpu-0-mig-4g40gb-5-0", 0 if is_foreign_first else 0.5, 0.9)
    hold_gpu("gpu-0-mig-3g40gb-9-4", 0.25, 1, gpu_share=Fraction(1, 2))
    assert failures() == []


def test_a_negative_part_is_found() -> None:
    """The database refuses more available units than there are, so the test takes that constraint away."""
    record(RESOURCES, 0)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE metering_capacityinterval DROP CONSTRAINT capacity_available_at_most_all")
    CapacityInterval.objects.filter(node="l40s-0").update(available=F("count") + 1)
    assert astuple(failure()) == (
        *(Check.PARTS_NOT_NEGATIVE, LOCAL, "l40s", "", "nvidia.com/gpu", "0 or more", "-1"),
        "The part unavailable of nvidia.com/gpu of flavor l40s was -1 GPUs; only variance can be negative.",
    )


def test_a_slot_that_two_intervals_hold_at_a_time_is_found() -> None:
    record(RESOURCES, 0)
    row = used(hour(0), hour(0.75))
    overlapping_copy(row, key=uuid4(), start=hour(0.5), end=hour(3), source_end=SEEN)
    assert astuple(failure()) == (
        *(Check.NO_OVERLAP, LOCAL, "l40s", "", row.slot, "1 interval at a time", "2 intervals"),
        f"{row.slot} is held by more than one interval at 2026-11-02 00:30:00 UTC, so that time is charged twice.",
    )
    assert failures(1) == []


def test_capacity_that_is_counted_twice_is_found() -> None:
    record(RESOURCES, 0)
    row = CapacityInterval.objects.get(node="l40s-0")
    overlapping_copy(row, end=hour(0.5), source_end=SEEN)
    found = failure()
    assert (found.check, found.node, found.name) == (Check.NO_OVERLAP, "l40s-0", "nvidia.com/gpu")
    assert found.message == (
        "The capacity nvidia.com/gpu of node l40s-0 is recorded more than once at 2026-11-02 00:00:00 UTC."
    )


def test_intervals_that_adjoin_or_are_empty_do_not_overlap() -> None:
    record(RESOURCES, 0)
    row = used(hour(0), hour(0.5))
    overlapping_copy(row, key=uuid4(), start=hour(0.5), end=hour(0.9), source_end=SEEN)
    overlapping_copy(row, key=uuid4(), start=hour(0.7), end=hour(0.7), source_end=SEEN)
    assert failures() == []


@pytest.mark.usefixtures("busy")
def test_another_clusters_ledger_changes_nothing() -> None:
    before = balance.of_hour(LOCAL, hour(0))
    far = make_cluster().slug
    used(hour(0), hour(1), 5, cluster=far)
    assert balance.of_hour(LOCAL, hour(0)) == before
    assert balance.of_hour(far, hour(0)).capacity == 5


@pytest.mark.usefixtures("busy")
def test_the_proof_of_an_hour_has_its_gpu_hours_and_is_replaced() -> None:
    with_fault = UsageInterval.objects.get(slot__endswith="gpu-0", node="h100-0")
    UsageInterval.objects.filter(pk=with_fault.pk).update(gpu_share_numerator=2)
    row = proofs.prove(LOCAL, hour(0))
    assert (row.balanced, row.failure_count, row.failures[0]["check"]) == (False, 1, "uses_fit_gpu")
    UsageInterval.objects.filter(pk=with_fault.pk).update(gpu_share_numerator=1)
    proofs.prove(LOCAL, hour(0))
    row = BalanceProof.objects.get()
    assert (row.balanced, row.failures, row.accounts, str(row.capacity_gpu_hours)) == (True, [], 3, "10.000000")
    amounts = [row.held, row.unmanaged, row.unavailable, row.stranded, row.idle, row.variance]
    assert sum(amounts) == row.capacity_gpu_hours
    assert [str(amount) for amount in amounts] == [
        *("3.071429", "0.100000", "0.185714", "0.000000", "6.642857", "0.000000")
    ]


@pytest.mark.usefixtures("busy")
def test_rounded_parts_of_a_balanced_hour_add_up_to_its_capacity() -> None:
    hold_gpu("gpu-1-mig-1g10gb-19-1", 0.1, 0.2, gpu_share=Fraction(1, 7))
    hold_gpu("gpu-1-mig-1g10gb-19-2", 0.1, 0.2, gpu_share=Fraction(1, 7))
    found = balance.of_hour(LOCAL, hour(0))
    assert sum(proofs.rounded(found).values()) == found.capacity


def test_what_fails_in_one_reading_alone_is_not_stored() -> None:
    record(RESOURCES, 0)
    passing = Failure(Check.HELD_AS_OBSERVED, LOCAL, "", "", "slot", "", "", "It was just being written.")
    readings = iter([[passing], []])
    assert proofs.prove(LOCAL, hour(0), lambda: next(readings)).balanced


def test_only_some_of_many_failing_rows_are_stored() -> None:
    many = [Failure(Check.HELD_AS_OBSERVED, LOCAL, "", "", f"slot-{n}", "", "", "It is not.") for n in range(150)]
    row = proofs.prove(LOCAL, hour(0), lambda: many)
    assert (len(row.failures), row.failure_count) == (100, 150)


def test_use_of_more_gpus_than_a_number_of_the_ledger_has_room_for_is_variance() -> None:
    record(RESOURCES, 0)
    for _ in range(3):
        used(hour(0), None, 2_000_000_000)
    row = proofs.prove(LOCAL, hour(0))
    assert row.balanced
    assert row.held == Decimal(6_000_000_000)
    assert row.variance == Decimal(-5_999_999_992)


def test_a_check_takes_the_same_queries_however_many_intervals() -> None:
    record({**RESOURCES, **GPUS}, 0)

    def grow() -> None:
        for n in range(30):
            used(hour(0.01 * n), hour(0.5))
            hold_gpu(f"gpu-0-mig-1g10gb-19-{n % 7}", 0.02 * n, 0.02 * n + 0.1, gpu_share=Fraction(1, 7))
            use_gpu_without_allocation("gpu-1", 0.02 * n, 0.02 * n + 0.01)

    assert_constant(lambda: balance.of_hour(LOCAL, hour(0)), grow, at_most=10)
    assert balance.of_hour(LOCAL, hour(0)).failures == []
