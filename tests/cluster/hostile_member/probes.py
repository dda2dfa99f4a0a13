"""What is looked at beside people's times: how far the watcher is behind, and how large etcd is."""

import time
from itertools import count

from allocations.cluster.kinds import KINDS
from allocations.models import MirrorObject
from bench.watching import KIND, claim
from tests.cluster.hostile_member.activities import Activity, Record
from tests.cluster.hostile_member.etcd import Etcd, Size
from tests.cluster.hostile_member.measures import LAG
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.waiting import eventually

WITHIN_S = 60.0


def watcher(admin: ApiClient, namespace: str) -> Activity:
    """Records the seconds from the API server's answer to a new object until the portal's database has its row.

    ``namespace`` is no project's. The object is of a kind that the watcher mirrors whoever made it, so it comes through
    the same queue as all that the attack makes the watcher see.
    """
    numbers, path = count(), KINDS[KIND].path(namespace)

    def once(record: Record) -> None:
        name = f"lag-{next(numbers)}"
        answer = admin.call("POST", path, claim(name))
        assert answer.status == 201, answer.message
        start = time.perf_counter()
        rows = MirrorObject.objects.filter(kind=KIND, namespace=namespace, name=name)
        eventually(rows.exists, within_s=WITHIN_S, every_s=0.005)
        record(LAG, time.perf_counter() - start)
        admin.call("DELETE", f"{path}/{name}")

    return Activity(once, pause_s=1.0)


def size(etcd: Etcd, sizes: list[Size]) -> Activity:
    """Adds the size of etcd to ``sizes``."""
    return Activity(lambda _: sizes.append(etcd.size()), pause_s=1.0)
