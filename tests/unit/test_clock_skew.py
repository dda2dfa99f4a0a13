"""The difference of two clocks, from times of whole seconds."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocations.cluster.clock_skew import SkewMeter

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)


def respond(meter: SkewMeter, at: float, ahead: float, there: float = 0.0, back: float = 0.0) -> None:
    """Send a request at a second, which takes so long there and back, to a server with a clock that is ahead."""
    sent_at = NOON + timedelta(seconds=at)
    told = (sent_at + timedelta(seconds=there + ahead)).replace(microsecond=0)
    meter.add(format_datetime(told, usegmt=True), sent_at, sent_at + timedelta(seconds=there + back))


def test_nothing_is_measured_without_a_response() -> None:
    assert SkewMeter().take() is None


def test_one_response_bounds_the_difference_to_a_second() -> None:
    meter = SkewMeter()
    respond(meter, 0.5, ahead=0)
    skew = meter.take()
    assert skew is not None
    assert (skew.seconds, skew.error) == (0, 0.5)


@given(
    ahead=st.floats(-3600, 3600),
    requests=st.lists(st.tuples(st.floats(0, 60), st.floats(0, 2), st.floats(0, 2)), min_size=1, max_size=30),
)
def test_the_true_difference_is_within_the_error(ahead: float, requests: list[tuple[float, float, float]]) -> None:
    meter = SkewMeter()
    for at, there, back in requests:
        respond(meter, at, ahead, there, back)
    skew = meter.take()
    assert skew is not None
    assert abs(skew.seconds - ahead) <= skew.error + 1e-4


def test_responses_at_other_fractions_of_a_second_bound_it_more_closely() -> None:
    meter = SkewMeter()
    for step in range(20):
        respond(meter, step * 1.05, ahead=1.2)
    skew = meter.take()
    assert skew is not None
    assert skew.error < 0.06
    assert skew.seconds == pytest.approx(1.2, abs=0.06)


def test_a_clock_that_was_set_is_measured_anew() -> None:
    meter = SkewMeter()
    respond(meter, 0, ahead=0)
    respond(meter, 10, ahead=60)
    skew = meter.take()
    assert skew is not None
    assert skew.seconds == pytest.approx(60, abs=0.5)


def test_a_measurement_is_taken_once() -> None:
    meter = SkewMeter()
    respond(meter, 0, ahead=0)
    assert meter.take() is not None
    assert meter.take() is None


def test_a_response_without_a_date_measures_nothing() -> None:
    meter = SkewMeter()
    meter.add("", NOON, NOON)
    assert meter.take() is None
