"""How often changes of the use of nodes have them counted."""

import pytest

from allocations.reconcile.usage_pace import EVERY_S, UsagePace
from portal.core.models import WorkItem
from tests.support.clusters import LOCAL

pytestmark = pytest.mark.django_db


@pytest.fixture
def clock(monkeypatch):
    """Return a list whose only value is the monotonic time in seconds."""
    now = [1000.0]
    monkeypatch.setattr("allocations.reconcile.usage_pace.monotonic", lambda: now[0])
    return now


def is_enqueued():
    return WorkItem.objects.filter(target="local/usage").delete()[0] == 1


def changed(pace):
    pace.changed(["h100-0"])
    pace.enqueue_due()
    return is_enqueued()


def test_the_first_change_is_counted_at_once(clock):
    assert changed(UsagePace(LOCAL))


def test_without_a_change_nothing_is_enqueued(clock):
    UsagePace(LOCAL).enqueue_due()
    assert not is_enqueued()


def test_changes_that_follow_soon_are_counted_together_once(clock):
    pace = UsagePace(LOCAL)
    assert changed(pace)
    assert not changed(pace)
    assert not changed(pace)
    clock[0] += EVERY_S
    pace.enqueue_due()
    assert is_enqueued()
    clock[0] += EVERY_S
    pace.enqueue_due()
    assert not is_enqueued()
