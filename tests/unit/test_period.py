"""The time of a request: hours or a date, and how long it waits."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest

from allocations.requests.period import Period, period

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WEEK, HOUR = timedelta(days=7), timedelta(hours=1)


def test_eight_hours_and_a_week_of_waiting_are_the_default():
    assert period(NOW, 8, WEEK) == Period(None, Decimal(8), None, NOW + WEEK, Fraction(8))


def test_a_wait_counts_from_a_later_start():
    found = period(NOW, 8, WEEK, hours=Decimal("1.5"), starts_at=NOW + HOUR)
    assert found == Period(NOW + HOUR, Decimal("1.5"), None, NOW + HOUR + WEEK, Fraction(3, 2))


def test_nobody_waits_beyond_a_date():
    end = NOW + 3 * HOUR
    assert period(NOW, 8, WEEK, ends_at=end) == Period(None, None, end, end, Fraction(3))


def test_a_length_of_waiting_counts_from_the_start():
    found = period(NOW, 8, WEEK, starts_at=NOW + HOUR, give_up_after=Decimal("1.5"))
    assert found == Period(NOW + HOUR, Decimal(8), None, NOW + 2.5 * HOUR, Fraction(8))


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"hours": Decimal("0.0000001")}, "hours"),
        ({"hours": Decimal(8785)}, "hours"),
        ({"hours": Decimal(1), "ends_at": NOW + HOUR}, "hours"),
        ({"ends_at": NOW}, "ends_at"),
        ({"give_up_at": NOW}, "give_up_at"),
        ({"give_up_at": NOW + 367 * 24 * HOUR}, "give_up_at"),
        ({"starts_at": NOW + 2 * HOUR, "give_up_at": NOW + HOUR}, "give_up_at"),
        ({"give_up_at": NOW + HOUR, "give_up_after": Decimal(1)}, "give_up_after"),
    ],
)
def test_what_cannot_be_is_said_at_its_field(asked, field):
    found = period(NOW, 8, WEEK, **asked)
    assert isinstance(found, dict)
    assert list(found) == [field]
