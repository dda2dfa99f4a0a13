"""Intervals of the past are added with their ends, before what is recorded and beside nothing."""

from dataclasses import replace
from fractions import Fraction
from uuid import uuid4

import pytest

from demo.simulated_history import past_intervals
from demo.simulated_history.past_intervals import PastCapacity, PastHold, PastUse
from portal.core.errors import Invalid
from quotas.metering import services as metering
from quotas.metering.foreign import Use
from quotas.metering.models import CapacityInterval, DirtyHour, ForeignUse, UsageInterval
from quotas.metering.services import Begin
from quotas.metering.units import GPU, FoundUnit, Unit, Value
from tests.support.capacity import H100, record
from tests.support.clusters import LOCAL
from tests.support.quotas import attribution, hour

pytestmark = pytest.mark.django_db
SEEN = {"kind": "test"}
SLOT = f"{LOCAL}/h100-0/gpu-0"
UNIT = Unit("h100-0", GPU, "gpu-0")


def hold(start: float, end: float) -> PastHold:
    return PastHold(Begin(uuid4(), uuid4(), SLOT, hour(start), attribution(**H100), 1, SEEN), hour(end))


def capacity(start: float, end: float) -> PastCapacity:
    return PastCapacity(UNIT, FoundUnit(1, 1), Value("h100", Fraction(1), offered=True), hour(start), hour(end))


def use(start: float, end: float) -> PastUse:
    one = Use(SLOT, "h100-0", GPU, "gpu-0", 1, "ResourceClaim", "trainer", "uid", "elsewhere")
    return PastUse(one, hour(start), hour(end))


def test_rows_have_both_bounds_and_their_evidence():
    past_intervals.add_holds(LOCAL, [hold(1, 2), hold(2, 3)], SEEN)
    past_intervals.add_capacity(LOCAL, [capacity(0, 4)], SEEN)
    past_intervals.add_foreign_use(LOCAL, [use(3, 4)])
    rows = UsageInterval.objects.order_by("start").values_list("start", "end", "source_start", "source_end")
    assert list(rows) == [(hour(1), hour(2), SEEN, SEEN), (hour(2), hour(3), SEEN, SEEN)]
    [there] = CapacityInterval.objects.all()
    assert (there.unit, there.value, there.end) == (UNIT, Value("h100", Fraction(1), offered=True), hour(4))
    assert ForeignUse.objects.get().end == hour(4)
    assert set(DirtyHour.objects.values_list("hour", flat=True)) == {hour(n) for n in range(4)}


@pytest.mark.parametrize("spans", [[(1, 3), (2, 4)], [(1, 1)], [(2, 1)]])
def test_an_interval_that_overlaps_another_or_has_no_time_is_refused(spans):
    with pytest.raises(Invalid):
        past_intervals.add_holds(LOCAL, [hold(*span) for span in spans], SEEN)
    with pytest.raises(Invalid):
        past_intervals.add_capacity(LOCAL, [capacity(*span) for span in spans], SEEN)
    with pytest.raises(Invalid):
        past_intervals.add_foreign_use(LOCAL, [use(*span) for span in spans])
    assert not UsageInterval.objects.exists()


def test_nothing_is_added_from_where_a_slot_or_unit_is_recorded():
    first = hold(5, 6).begin
    metering.open_interval(first.key, first.holder_id, SLOT, first.at, first.attribution, 1, SEEN)
    record({UNIT: FoundUnit(1, 1)}, 5)
    with pytest.raises(Invalid, match="is recorded since 2026-11-02 05:00:00; end then or before"):
        past_intervals.add_holds(LOCAL, [hold(4, 5.5)], SEEN)
    with pytest.raises(Invalid, match="end then or before"):
        past_intervals.add_capacity(LOCAL, [capacity(4, 5.5)], SEEN)
    past_intervals.add_holds(LOCAL, [hold(4, 5)], SEEN)
    past_intervals.add_capacity(LOCAL, [capacity(4, 5)], SEEN)


def test_another_slot_may_have_been_held_at_the_same_time():
    one, other = hold(1, 3), hold(2, 4)
    other = replace(other, begin=replace(other.begin, slot=f"{LOCAL}/h100-0/gpu-1"))
    assert past_intervals.add_holds(LOCAL, [one, other], SEEN) == 2
