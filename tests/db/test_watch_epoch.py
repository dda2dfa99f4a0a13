"""Only one of several watchers writes the mirror; one that has lost its epoch without knowing writes nothing."""

from collections.abc import Iterator

import pytest
from django.db import OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from allocations.cluster.kinds import KINDS, Observation
from allocations.domain.objects import Ref
from allocations.models import MirrorObject, WatchEpoch, WatchState
from allocations.reconcile import watch_epoch
from allocations.reconcile.mirror_writer import record_observations, record_sync
from portal.core import clock
from portal.core.locks import lock_id
from tests.support.cluster.waiting import eventually
from tests.support.clusters import LOCAL

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def other() -> Iterator[BaseDatabaseWrapper]:
    """Return the connection of another process."""
    made = connections.create_connection("default")
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _given_back() -> Iterator[None]:
    yield
    connections["default"].close()


def begin() -> int:
    """Begin an epoch; PostgreSQL releases the lock of a closed connection only when its process has ended."""
    epoch = eventually(lambda: watch_epoch.begin(LOCAL))
    assert epoch is not None
    return epoch


def test_a_second_watcher_gets_no_epoch_until_the_first_ones_connection_is_closed(other: BaseDatabaseWrapper) -> None:
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [lock_id("watcher", LOCAL)])
    assert watch_epoch.begin(LOCAL) is None
    other.close()
    assert begin() == 1


def test_each_epoch_has_the_next_number() -> None:
    first = begin()
    connections["default"].close()
    assert (first, begin()) == (1, 2)


def test_a_watcher_whose_epoch_is_over_writes_nothing() -> None:
    epoch = begin()
    WatchEpoch.objects.update(number=epoch + 1)
    with pytest.raises(watch_epoch.EpochOver), watch_epoch.writing(LOCAL, epoch):
        WatchState.objects.create(cluster_id=LOCAL, kind="Pod", synced_at=clock.now())
    assert not WatchState.objects.exists()


def test_a_database_from_a_backup_ends_the_epoch() -> None:
    epoch = begin()
    WatchEpoch.objects.update(number=epoch - 1)
    with pytest.raises(watch_epoch.EpochOver), watch_epoch.writing(LOCAL, epoch):
        pass


def test_a_new_epoch_begins_when_what_the_former_one_writes_is_written(other: BaseDatabaseWrapper) -> None:
    epoch = begin()
    with transaction.atomic(), watch_epoch.writing(LOCAL, epoch), other.cursor() as cursor:
        cursor.execute("SET lock_timeout = '200ms'")
        with pytest.raises(Exception, match="lock timeout"):
            cursor.execute("UPDATE allocations_watchepoch SET number = number + 1")


def test_positions_are_recorded_in_one_statement_while_the_epoch_lasts(django_assert_num_queries) -> None:
    epoch, now = begin(), clock.now()
    with django_assert_num_queries(1):
        record_sync(LOCAL, (KINDS["Pod"], 7, now), (KINDS["Node"], 9, now), epoch=epoch)
    record_sync(LOCAL, (KINDS["Pod"], 8, now), epoch=epoch)
    found = WatchState.objects.order_by("kind").values_list("kind", "resource_version", "synced_at")
    assert list(found) == [("Node", 9, now), ("Pod", 8, now)]


def test_a_watcher_whose_epoch_is_over_records_no_positions_and_no_observations() -> None:
    epoch = begin()
    WatchEpoch.objects.update(number=epoch + 1)
    with pytest.raises(watch_epoch.EpochOver):
        record_sync(LOCAL, (KINDS["Pod"], 7, clock.now()), epoch=epoch)
    with pytest.raises(watch_epoch.EpochOver):
        record_observations(LOCAL, [seen_pod()], epoch=epoch)
    assert not WatchState.objects.exists()
    assert not MirrorObject.objects.exists()


def test_no_epoch_begins_while_observations_are_recorded(other: BaseDatabaseWrapper) -> None:
    epoch = begin()
    with transaction.atomic():
        record_observations(LOCAL, [seen_pod()], epoch=epoch)
        with other.cursor() as cursor, pytest.raises(OperationalError, match="could not obtain lock"):
            cursor.execute("SELECT number FROM allocations_watchepoch FOR UPDATE NOWAIT")
    assert MirrorObject.objects.exists()


def seen_pod() -> Observation:
    return Observation(Ref("Pod", "elsewhere", "train"), "uid", 7, clock.now(), live=True, facts={})
