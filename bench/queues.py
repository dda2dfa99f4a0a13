"""python -m tests.services python -m bench.queues [--rounds 20]

Time and SQL queries of the pages and answers that show queue positions, with 5 and with 500 waiting entries: half of
them allocations, half Jobs. There is no Kueue, so the portal's own order is used.
"""

import argparse
import json
import os
import statistics
import time
from typing import Any

SIZES = (5, 500)
PAGES = ("/queues/vision", "/", "/allocations")
ANSWERS = ("queues/vision", "queues", "allocations?limit=25", "jobs?limit=25")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.queues")
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    print(json.dumps(_measure(arguments.rounds), indent=2))  # noqa: T201
    return 0


def _measure(rounds: int) -> dict[str, dict[str, Any]]:
    """Return, by path and number of waiting entries: milliseconds (``cpu_ms``: of this process only), SQL queries,
    bytes.
    """
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from allocations.models import Allocation, MirrorObject
    from portal.tenants import services as tenants
    from portal.tenants.actors import SYSTEM
    from quotas.catalog.models import Offering
    from tests.support.fleet import fleet
    from tests.support.people import person
    from tests.support.queued import crowd

    call_command("migrate", verbosity=0)
    team = tenants.create_team(SYSTEM, tenants.create_department(SYSTEM, "research", "Research"), "vision", "Vision")
    project = tenants.create_project(SYSTEM, team, "vision-train", "Vision training")
    fleet(team)
    member, client = person(team), Client(SERVER_NAME="127.0.0.1")
    client.force_login(member)
    found: dict[str, dict[str, Any]] = {}
    for size in SIZES:
        Allocation.objects.all().delete()
        MirrorObject.objects.filter(kind="Workload").delete()
        crowd(member, project, Offering.objects.get(key="l40s/whole"), size)
        for path in [*PAGES, *(f"/api/v1/{answer}" for answer in ANSWERS)]:
            took, used = [], []
            for _ in range(rounds):
                began, cpu = time.perf_counter(), time.process_time()
                answer = client.get(path)
                took.append((time.perf_counter() - began) * 1000)
                used.append((time.process_time() - cpu) * 1000)
                if answer.status_code != 200:
                    raise RuntimeError(f"{path}: {answer.status_code} {answer.content.decode()[:300]}")
            with CaptureQueriesContext(connection) as caught:
                client.get(path)
            found.setdefault(path, {})[str(size)] = {
                "median_ms": round(statistics.median(took), 1),
                "least_ms": round(min(took), 1),
                "cpu_ms": round(statistics.median(used), 1),
                "queries": len(caught),
                "bytes": len(answer.content),
            }
    return found


if __name__ == "__main__":
    raise SystemExit(main())
