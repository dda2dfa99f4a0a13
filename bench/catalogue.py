"""python -m bench --only catalogue: pages and lists of a full fleet against one SQL statement and json.dumps.

Runs in this process through all middleware, with a token or a session as over HTTP, on a database of its own.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from time import perf_counter
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings

from allocations.models import Allocation
from allocations.reconcile.inventory import reconcile_inventory
from bench import bare_reads, crowd
from bench.crowd import Crowd
from bench.statistics import compare
from portal.clusters import registry
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Scope
from quotas.catalog.models import Device, Node

WARM_UP = 2
ALLOCATIONS = "/api/v1/allocations?limit=100"
Call = Callable[[], object]


def measure(rounds: int) -> dict[str, Any]:
    """Return the part ``catalogue`` of ``bench.json``."""
    with throw_away_database():
        users = crowd.fill()
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        start = perf_counter()
        reconcile_inventory(registry.own())
        inventory = perf_counter() - start
        return {
            "nodes": Node.objects.count(),
            "devices": Device.objects.count(),
            "allocations": Allocation.objects.count(),
            "inventory_s": round(inventory, 2),
            "routes": {name: _route(ours, bare, rounds) for name, ours, bare in _routes(users)},
        }


@contextmanager
def throw_away_database() -> Iterator[None]:
    name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        yield
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def _routes(users: Crowd) -> Iterator[tuple[str, Call, Call]]:
    _, secret = tenants.issue_token(SYSTEM, users.person, "bench", [Scope.READ], timedelta(hours=1))
    api = Client(SERVER_NAME="127.0.0.1", headers={"Authorization": f"Bearer {secret}"})
    browser = Client(SERVER_NAME="127.0.0.1")
    browser.force_login(users.person)
    values: Mapping[str, Any] = {"team": users.team.pk, "person": users.person.pk}

    def reads(limit: int, *statements: str) -> Call:
        return lambda: [bare_reads.read(statement, {**values, "limit": limit}) for statement in statements]

    def gets(client: Client, path: str) -> Call:
        return lambda: _get(client, path)

    def misses_cache(client: Client, path: str) -> Call:
        return lambda: _get_without_cache(client, path)

    project = users.project.slug
    offerings = bare_reads.OFFERINGS
    yield "GET /offerings", gets(api, "/api/v1/offerings?limit=100"), reads(0, offerings)
    yield "GET /offerings of a project", gets(api, f"/api/v1/offerings?project={project}"), reads(0, offerings)
    yield "GET /offerings, cache miss", misses_cache(api, "/api/v1/offerings?limit=100"), reads(0, offerings)
    yield "GET /allocations, 100", gets(api, ALLOCATIONS), reads(100, bare_reads.NEWEST)
    yield "GET /allocations, 100, unchanged", lambda: _get_unchanged(api, ALLOCATIONS), reads(100, bare_reads.NEWEST)
    yield "page /", gets(browser, "/"), reads(100, bare_reads.OWN, offerings)
    yield "page /request", gets(browser, f"/request?project={project}"), reads(0, offerings)
    yield "page /allocations, 25", gets(browser, "/allocations"), reads(25, bare_reads.NEWEST, bare_reads.COUNT)


def _get(client: Client, path: str, tag: str = "") -> str:
    """Return the ETag of the answer; ``tag`` is that of an earlier one."""
    answer = client.get(path, headers={"If-None-Match": tag})
    if answer.status_code not in (200, 304):
        raise RuntimeError(f"{path}: {answer.status_code} {answer.content.decode()[:300]}")
    return str(answer.get("ETag", ""))


_tags: dict[str, str] = {}


def _get_unchanged(client: Client, path: str) -> None:
    """Ask as who polls: with the last tag, which is another one each minute."""
    _tags[path] = _get(client, path, _tags.get(path, ""))


def _get_without_cache(client: Client, path: str) -> None:
    with override_settings(FLEET_MAX_AGE_S=0):
        _get(client, path)


def _route(ours: Call, bare: Call, rounds: int) -> dict[str, Any]:
    series: tuple[list[float], list[float]] = ([], [])
    for _ in range(WARM_UP):
        ours()
        bare()
    for n in range(rounds):
        for side in (0, 1) if n % 2 else (1, 0):
            start = perf_counter()
            (ours, bare)[side]()
            series[side].append(perf_counter() - start)
    with CaptureQueriesContext(connection) as caught:
        ours()
    return {**compare(*series).document(), "queries": len(caught)}
