"""What the witness takes from its readings: two a second, so that a holder may run and go between two of them."""

from pathlib import Path

import pytest

from deploy.local.home import Home
from tests.support.faults.witness import Hold, Reading, Slot, Witness

DEVICE = Slot("vision", "training", "h100-1/gpu-0")
NOTHING = Reading(set(), set(), set())
WAITS = Reading(set(), {DEVICE}, {DEVICE})
HELD = Reading({DEVICE}, {DEVICE}, set())
ABANDONED = Reading(set(), {DEVICE}, set())


def seen(*readings: Reading) -> list[Hold]:
    """Return the holds of the device after readings at 1, 2, 3 ... s."""
    witness = Witness(Home(Path(), {}, Path()))
    for at, reading in enumerate(readings, start=1):
        witness.record(reading, before=at - 1.0, now=float(at))
    return witness.holds[DEVICE]


def test_a_hold_begins_when_the_holder_runs_and_ends_when_nothing_is_allocated() -> None:
    assert seen(NOTHING, WAITS, HELD, ABANDONED, ABANDONED, NOTHING) == [Hold((2.0, 3.0), (5.0, 6.0))]


@pytest.mark.parametrize("before", [NOTHING, WAITS])
def test_a_holder_that_is_gone_before_it_was_seen_to_run_makes_a_hold_that_is_not_certain(before: Reading) -> None:
    assert seen(before, ABANDONED, ABANDONED, NOTHING) == [Hold((1.0, 2.0), (3.0, 4.0), is_certain=False)]


def test_it_is_certain_once_a_holder_runs_and_gone_if_one_waits() -> None:
    assert seen(NOTHING, ABANDONED, HELD) == [Hold((1.0, 3.0))]
    assert seen(NOTHING, ABANDONED, WAITS, HELD) == [Hold((3.0, 4.0))]


def test_devices_that_only_wait_for_their_holder_are_not_held() -> None:
    assert seen(NOTHING, WAITS, WAITS, NOTHING) == []
