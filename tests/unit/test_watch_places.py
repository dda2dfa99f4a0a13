"""How far a watch has come, when its connection broke."""

from datetime import UTC, datetime

import pytest

from allocations.cluster.errors import StoreRestored
from allocations.cluster.kinds import KINDS
from allocations.cluster.watcher import WatchPosition

T0 = datetime(2026, 11, 2, 12, tzinfo=UTC)


def test_what_happened_up_to_now_was_not_watched():
    place = WatchPosition(100, T0)
    place.missed(KINDS["Pod"], 120)
    assert (place.revision, place.missed_until) == (100, 120)


def test_a_revision_before_the_place_is_another_history():
    with pytest.raises(StoreRestored, match="Pod was seen at revision 100 and is at 99"):
        WatchPosition(100, T0).missed(KINDS["Pod"], 99)
