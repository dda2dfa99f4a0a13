"""Times on the command line: lengths as people type them, and an end in words."""

from datetime import timedelta

import click
import pytest

from portal.cli import times

HELD = {"hours": "8.000000", "hours_left": "5.250000", "ended_at": None, "ends_at": "2026-03-01T12:00:00Z"}


@pytest.mark.parametrize(
    ("text", "hours"), [("2d", 48), ("12h", 12), ("1d12h", 36), ("90m", 1.5), ("1d1h30m", 25.5), ("0h", 0)]
)
def test_a_length_is_written_in_days_hours_and_minutes(text, hours):
    assert times.LENGTH.convert(text, None, None) == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["", "2", "2 d", "h", "-1h", "1.5h", "2w", "1h2d", "١d"])
def test_what_is_no_length_is_refused_with_what_is_one(text):
    with pytest.raises(click.BadParameter, match="write it as 2d, 12h"):
        times.LENGTH.convert(text, None, None)


@pytest.mark.parametrize(("minutes", "hours"), [(2880, "48"), (90, "1.5"), (600, "10"), (1, "0.016667"), (0, "0")])
def test_a_length_is_sent_in_hours(minutes, hours):
    assert times.in_hours(timedelta(minutes=minutes)) == hours


def test_an_end_is_a_time_once_it_is_held_and_what_is_left_before():
    assert times.end(HELD) == "2026-03-01 12:00:00Z"
    assert times.end({**HELD, "ends_at": None}) == "5.25 h from held"


def test_the_requested_time_is_hours_held_or_a_date():
    assert times.requested(HELD) == "8 h held"
    assert times.requested({**HELD, "hours": None}) == "until 2026-03-01 12:00:00Z"
