from datetime import UTC, datetime, timedelta, timezone

from quotas.metering.hours import day_of, hour_of, hours_between, midnights

BERLIN = timezone(timedelta(hours=1))


def at(day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


def test_an_hour_and_a_day_begin_in_utc_whatever_the_zone() -> None:
    moment = datetime(2026, 11, 3, 0, 30, tzinfo=BERLIN)
    assert (hour_of(moment), day_of(moment)) == (at(2, 23), at(2))


def test_hours_between_are_those_that_begin_before_the_end() -> None:
    assert list(hours_between(at(2, 22), at(3, 0, 30))) == [at(2, 22), at(2, 23), at(3)]
    assert list(hours_between(at(2), at(2))) == []


def test_midnights_are_between_the_bounds() -> None:
    assert midnights(at(2, 5), at(4)) == [at(2, 5), at(3), at(4)]
    assert midnights(at(2), at(2, 5)) == [at(2), at(2, 5)]
