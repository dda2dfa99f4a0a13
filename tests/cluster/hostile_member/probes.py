"""Measures beside people's times: the delay of the watcher, and the size of etcd."""

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
    """Record the seconds from the API server's answer to a new object until the portal's database has its row.

    ``namespace`` is no project. The watcher mirrors objects of this kind whoever created them, so it passes through the
    same queue as the attack's objects.
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
    """Append the size of etcd to ``sizes``."""
    return Activity(lambda _: sizes.append(etcd.size()), pause_s=1.0)
