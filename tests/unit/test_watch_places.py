"""The position of a watch after its connection broke, or was kept by a proxy while etcd was restored from a
backup.
"""

from datetime import UTC, datetime, timedelta

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


def test_a_watch_comes_further_event_by_event():
    position, later = WatchPosition(100, T0), T0 + timedelta(seconds=1)
    position.reached(KINDS["Pod"], 100, later)
    position.reached(KINDS["Pod"], 105, later)
    assert position == WatchPosition(105, later)


def test_an_event_before_the_position_is_of_another_history():
    position = WatchPosition(100, T0)
    with pytest.raises(StoreRestored, match="Pod was seen at revision 100 and is at 99"):
        position.reached(KINDS["Pod"], 99, T0)
    assert position.revision == 100
