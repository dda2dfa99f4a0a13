from datetime import UTC, datetime, timedelta

import pytest

from portal.core import clock

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_a_frozen_clock_stands_still_and_then_runs_on():
    with clock.frozen(NOON):
        assert clock.now() == NOON
        with clock.frozen(NOON + timedelta(hours=1)):
            assert clock.now() == NOON + timedelta(hours=1)
        assert clock.now() == NOON
    assert clock.now() != NOON


def test_a_time_without_zone_is_no_time_to_freeze_at():
    with pytest.raises(ValueError, match="aware"), clock.frozen(NOON.replace(tzinfo=None)):
        pass
