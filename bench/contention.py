"""python -m tests.services python -m bench.contention [--clients 32] [--requests 1000] [--seconds 10]

Clients request slices under one member's limit, and each releases its slice before the next request. Afterwards the
limit's history is checked: no grant ever exceeded it. pgbench with the same locking is measured for comparison.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID, uuid4

THREADS = 8
NOMINAL = 12
SCRIPT = """
\\set a random(1, 9000000000000000000)
BEGIN;
WITH granted AS (
    UPDATE limits_limit SET used = used + {parts}, changes = changes + 1
    WHERE id = {limit} AND used + {parts} <= nominal::bigint * {parts} RETURNING changes
) INSERT INTO limits_limituse (limit_id, allocation, parts, granted_seq)
    SELECT {limit}, lpad(to_hex(:a), 32, '0')::uuid, {parts}, changes FROM granted;
COMMIT;
BEGIN;
WITH given AS (
    DELETE FROM limits_limituse WHERE allocation = lpad(to_hex(:a), 32, '0')::uuid RETURNING parts
) UPDATE limits_limit SET used = used - given.parts, changes = changes + 1 FROM given WHERE id = {limit};
COMMIT;
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.contention")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--requests", type=int, default=1000, help="decisions that each client asks for")
    parser.add_argument("--seconds", type=int, default=10, help="of pgbench")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    limit = _prepare()
    began = time.monotonic()
    share = arguments.clients // THREADS
    with multiprocessing.get_context("spawn").Pool(share) as processes:
        granted = sum(processes.map(_clients, [(limit, arguments.requests)] * share))
    seconds = time.monotonic() - began
    decisions = share * THREADS * arguments.requests
    highest = _highest_use(limit)
    found = {
        "clients": share * THREADS,
        "decisions": decisions,
        "granted": granted,
        "limit": NOMINAL,
        "highest": highest,
        "decisions_per_s": round(decisions / seconds),
        "pgbench_per_s": round(_pgbench(limit, share * THREADS, arguments.seconds)),
    }
    print(json.dumps(found, indent=2))  # noqa: T201
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")
    return 0 if highest <= NOMINAL else 1


def _prepare() -> int:
    """Create a member with a limit, on a database of its own; return the limit's id."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    from django.core.management import call_command

    from portal.tenants import services as tenants
    from portal.tenants.actors import SYSTEM
    from quotas.limits import services as limits
    from tests.support.people import person
    from tests.support.quotas import cluster

    call_command("migrate", verbosity=0)
    cluster()
    team = tenants.create_team(SYSTEM, tenants.create_department(SYSTEM, "research", "Research"), "vision", "Vision")
    return int(limits.set_limit(SYSTEM, team.memberships.get(user=person(team)), None, NOMINAL).pk)


def _clients(task: tuple[int, int]) -> int:
    """Run some clients of one process, a connection each; return the number of granted requests."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(THREADS) as threads:
        return sum(threads.map(_client, [task] * THREADS))


def _client(task: tuple[int, int]) -> int:
    from django.db import connection

    from quotas.catalog.models import Offering
    from quotas.limits import counting
    from quotas.limits.models import Limit

    limit_id, requests = task
    limit = Limit.objects.get(pk=limit_id)
    demand = counting.demand(Offering.objects.select_related("pool").get(key="l40s/whole"), 1)
    held: UUID | None = None
    granted = 0
    for _ in range(requests):
        if held:
            counting.release(held)
            held = None
        holder_id = uuid4()
        try:
            counting.grant(holder_id, [limit], demand)
        except counting.LimitReached:
            continue
        held, granted = holder_id, granted + 1
    if held:
        counting.release(held)
    connection.close()
    return granted


def _highest_use(limit: int) -> int:
    """Return the largest number of units granted at once, from the numbered changes; raise AssertionError for a
    gap.
    """
    from quotas.limits.models import FRACTION_BASE, Limit, LimitUse

    changes: dict[int, int] = {}
    for granted_seq, released_seq, parts in LimitUse.objects.filter(limit=limit).values_list(
        "granted_seq", "released_seq", "parts"
    ):
        changes[granted_seq] = parts
        if released_seq is not None:
            changes[released_seq] = -parts
    row = Limit.objects.get(pk=limit)
    assert sorted(changes) == list(range(1, row.changes + 1)), "a change is missing"
    used = highest = 0
    for number in sorted(changes):
        used += changes[number]
        highest = max(highest, used)
    assert used == row.used, f"{used} are counted, and the limit says {row.used}"
    return highest // FRACTION_BASE


def _pgbench(limit: int, clients: int, seconds: int) -> float:
    """Return scripts per second; each grants and releases under the same lock of the same row."""
    from deploy.local.stores import postgres_binaries
    from quotas.limits.models import FRACTION_BASE

    url = urlsplit(os.environ["DATABASE_URL"])
    where = {"PGHOST": url.hostname or parse_qs(url.query)["host"][0], "PGUSER": url.username or ""}
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(SCRIPT.format(parts=FRACTION_BASE, limit=limit))
        script.flush()
        command = ["pgbench", "-n", "-c", str(clients), "-j", "2", "-T", str(seconds), "-f", script.name]
        program = str(postgres_binaries() / command[0])
        environment: dict[str, Any] = {**os.environ, **where}
        done = subprocess.run(
            [program, *command[1:], url.path.lstrip("/")], env=environment, capture_output=True, text=True, check=True
        )
    [line] = [line for line in done.stdout.splitlines() if line.startswith("tps")]
    return float(line.split("=")[1].split()[0])


if __name__ == "__main__":
    sys.exit(main())
