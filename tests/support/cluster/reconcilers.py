"""python -m tests.support.cluster.reconcilers COUNT: reconcile one allocation COUNT times concurrently, without the
work queue.

Prints ``ready`` when connected, reads the allocation's id from standard input, and begins. As in the work queue, one
that waited too long for the lock begins again. Exits 1 if any raised something else.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import django

AGAIN_WITHIN_S = 120.0

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")


def main(count: int) -> int:
    django.setup()
    from django.db import connection

    from allocations.cluster.client import connect
    from allocations.reconcile.allocation import reconcile_allocation
    from portal.core.errors import Retryable
    from tests.support.cluster.waiting import eventually
    from tests.support.clusters import LOCAL

    client, together = connect(LOCAL), Barrier(count)

    def once(id_: str) -> None:
        together.wait()
        try:
            eventually(lambda: reconcile_allocation(id_, client) or True, Retryable, within_s=AGAIN_WITHIN_S)
        finally:
            connection.close()

    sys.stdout.write("ready\n")
    sys.stdout.flush()
    id_ = sys.stdin.readline().strip()
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(once, [id_] * count))
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
