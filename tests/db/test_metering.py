"""The ledger: each observation once, one holder per slot, ends that do not change."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from fractions import Fraction
from threading import Barrier
from uuid import UUID, uuid4

import pytest
from django.db import IntegrityError, connection, transaction

from portal.core import clock
from quotas.metering.models import UsageInterval
from quotas.metering.services import SlotHeld, close_interval, close_intervals, open_interval
from tests.support.quotas import attribution, hour

KEY = UUID(int=1)
ALLOCATION = UUID(int=2)
SEEN = {"kind": "ResourceClaim", "name": "train-1", "resource_version": "41"}
GONE = {"kind": "Pod", "name": "train-1-holder", "resource_version": "57"}


def opened(key: UUID = KEY, slot: str = "device:h100-0/gpu-0", at=None, **values) -> UsageInterval:
    return open_interval(key, ALLOCATION, slot, at or hour(1), attribution(), 2, SEEN, **values)


def ended(target: UUID | str, at: datetime, evidence=GONE, **values) -> UsageInterval:
    row = close_interval(target, at, evidence, **values)
    assert row
    return row


@pytest.mark.django_db
def test_an_interval_carries_who_held_what_and_the_evidence():
    with clock.frozen(hour(1.5)):
        open_interval(
            KEY,
            ALLOCATION,
            "slot",
            hour(1),
            attribution(gpu_share=Fraction(1, 7), node="a100-0", device_uuid="GPU-1", labels={"app": "train"}),
            3,
            SEEN,
            estimated=True,
        )
    row = UsageInterval.objects.values().get()
    assert row == {
        "key": KEY,
        "holder_id": ALLOCATION,
        "slot": "slot",
        "start": hour(1),
        "end": None,
        "estimated_start": True,
        "estimated_end": False,
        "gpu_share_numerator": 1,
        "gpu_share_denominator": 7,
        "count": 3,
        "unused": False,
        "overtime": False,
        "uncharged": False,
        "offering": "l40s/whole",
        "flavor": "l40s",
        "kind": "whole",
        "cluster_id": "local",
        "node": "a100-0",
        "device_uuid": "GPU-1",
        "department": "research",
        "team": "vision",
        "project": "vision-train",
        "member": "ada",
        "namespace": "vision-train",
        "labels": {"app": "train"},
        "source_start": SEEN,
        "source_end": None,
        "recorded_at": hour(1.5),
    }
    assert UsageInterval.objects.get().gpus == Fraction(3, 7)


@pytest.mark.django_db
def test_the_same_fact_twice_is_one_row_even_after_it_ended():
    first = opened()
    assert opened(at=hour(9)).start == first.start
    close_interval(KEY, hour(2), GONE)
    assert opened().end == hour(2)
    assert UsageInterval.objects.count() == 1


@pytest.mark.django_db
def test_the_first_end_counts():
    opened()
    first = ended(KEY, hour(2), estimated=True)
    again = ended(KEY, hour(3), SEEN)
    assert (first.end, first.source_end, first.estimated_end) == (hour(2), GONE, True)
    assert (again.end, again.source_end, again.estimated_end) == (hour(2), GONE, True)


@pytest.mark.django_db
def test_an_interval_is_ended_by_its_slot_as_well():
    opened()
    assert ended("device:h100-0/gpu-0", hour(2)).end == hour(2)
    assert ended("device:h100-0/gpu-0", hour(3)).end == hour(2)


@pytest.mark.django_db
def test_ending_what_never_was_is_nothing():
    assert close_interval(uuid4(), hour(2), GONE) is None
    assert close_interval("no such slot", hour(2), GONE) is None


@pytest.mark.django_db
def test_an_end_before_the_start_is_the_start():
    opened()
    assert ended(KEY, hour(0)).end == hour(1)


@pytest.mark.django_db
def test_several_intervals_end_together_each_with_its_evidence_unless_they_ended_before(django_assert_num_queries):
    for number in range(1, 5):
        opened(UUID(int=number), f"slot-{number}", hour(number))
    close_interval(UUID(int=1), hour(2), SEEN)
    evidence = {UUID(int=number): {**GONE, "name": f"train-{number}"} for number in range(1, 4)}
    with clock.frozen(hour(2.6)), django_assert_num_queries(1):
        close_intervals(evidence, hour(2.5), estimated=True)
    rows = UsageInterval.objects.order_by("key").values_list("end", "source_end", "estimated_end")
    assert list(rows) == [
        (hour(2), SEEN, False),
        (hour(2.5), evidence[UUID(int=2)], True),
        (hour(3), evidence[UUID(int=3)], True),
        (None, None, False),
    ]


@pytest.mark.django_db
def test_a_held_slot_is_refused_with_who_holds_it():
    opened()
    with pytest.raises(SlotHeld, match=f"held by {ALLOCATION}"):
        opened(UUID(int=9))
    assert UsageInterval.objects.count() == 1


@pytest.mark.django_db
def test_no_second_of_a_slot_is_billed_twice():
    opened()
    close_interval(KEY, hour(3), GONE)
    assert opened(UUID(int=9), at=hour(2)).start == hour(3)
    assert opened(UUID(int=10), slot="another", at=hour(2)).start == hour(2)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "wrong",
    [
        {"end": hour(0), "source_end": GONE},
        {"end": hour(2), "source_end": None},
        {"end": None, "source_end": GONE},
        {"end": None, "estimated_end": True},
        {"count": 0},
        {"gpu_share_denominator": 0},
    ],
)
def test_the_database_refuses_what_cannot_be(wrong):
    opened()
    with pytest.raises(IntegrityError), transaction.atomic():
        UsageInterval.objects.update(**wrong)


@pytest.mark.django_db
def test_the_database_itself_keeps_one_open_interval_per_slot():
    row = opened()
    row.pk = uuid4()
    with pytest.raises(IntegrityError), transaction.atomic():
        row.save(force_insert=True)


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_opens_a_slot():
    keys = [UUID(int=n) for n in range(100, 108)]
    barrier = Barrier(len(keys))

    def attempt(key: UUID) -> str:
        try:
            barrier.wait(timeout=10)
            opened(key)
            return "opened"
        except SlotHeld:
            return "refused"
        finally:
            connection.close()

    with ThreadPoolExecutor(len(keys)) as pool:
        outcomes = list(pool.map(attempt, keys))
    assert sorted(outcomes) == ["opened"] + ["refused"] * 7
    assert UsageInterval.objects.filter(end=None).count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_observers_of_one_fact_all_get_the_same_row_and_the_same_end():
    barrier = Barrier(6)

    def observe(number: int) -> tuple[object, object]:
        try:
            barrier.wait(timeout=10)
            row = opened()
            return row.pk, ended(row.pk, hour(2 + number)).end
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        outcomes = set(pool.map(observe, range(6)))
    assert len(outcomes) == 1
    assert UsageInterval.objects.count() == 1
