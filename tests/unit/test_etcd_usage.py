"""The fill level of etcd, as the API server reports it."""

import json

import pytest
from kubernetes.client.exceptions import ApiException

from allocations.cluster.client import _as_cluster_error
from allocations.cluster.errors import ClusterRefused, ClusterStoreFull
from allocations.cluster.etcd_size import largest
from allocations.domain.etcd_usage import Level, Store

GIB = 1024**3
SERVED = b"""# HELP apiserver_storage_size_bytes [STABLE] Size of the storage database file.
# TYPE apiserver_storage_size_bytes gauge
apiserver_storage_size_bytes{storage_cluster_id="etcd-0"} 2.6042368e+07
apiserver_storage_size_bytes{storage_cluster_id="etcd-1"} 4.096e+06
apiserver_storage_size_bytes_other 9e+09
""".splitlines()


@pytest.mark.parametrize(
    ("store", "level", "summary"),
    [
        (Store(2 * GIB), Level.NORMAL, "size unknown"),
        (Store(2 * GIB, 26 * 1024**2), Level.NORMAL, "26 MiB of 2.0 GiB (1%)"),
        (Store(10 * GIB, 6 * GIB), Level.HIGH, "6.0 GiB of 10.0 GiB (60%)"),
        (Store(100, 85), Level.CRITICAL, "0 MiB of 0 MiB (85%)"),
        (Store(GIB, GIB), Level.FULL, "full, every write in the cluster is refused: 1.0 GiB of 1.0 GiB (100%)"),
        (
            Store(GIB, 0, refused_writes=1),
            Level.FULL,
            "full, every write in the cluster is refused: 0 MiB of 1.0 GiB (0%)",
        ),
        (Store(GIB, None, refused_writes=1), Level.FULL, "full, every write in the cluster is refused: size unknown"),
    ],
)
def test_the_share_of_the_quota_and_refused_writes_decide_the_level(store, level, summary):
    assert (store.level, store.summary) == (level, summary)


def test_the_largest_database_counts():
    assert largest(SERVED) == 26_042_368


def test_a_server_that_does_not_tell_its_size_gives_none():
    assert largest([b"# HELP up", b"up 1"]) is None


def answered(status, message):
    error = ApiException(status=status)
    error.body = json.dumps({"message": message})
    return _as_cluster_error(error)


@pytest.mark.parametrize("status", [500, 403])
def test_a_write_that_found_no_space_is_told_apart_and_tried_again(status):
    found = answered(status, "etcdserver: mvcc: database space exceeded")
    assert isinstance(found, ClusterStoreFull)
    assert found.reason == "cluster_store_full"


def test_another_refusal_stays_a_refusal():
    assert isinstance(answered(403, "no"), ClusterRefused)
