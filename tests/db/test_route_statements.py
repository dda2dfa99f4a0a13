"""The SQL statements of a route, BEGIN and COMMIT included: while processors are busy, each waits for one in turn."""

from collections.abc import Callable
from typing import Any

import pytest
import redis
from django.conf import settings as django_settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings

from portal.core import heartbeat
from portal.tenants.models import Project, Team, User
from tests.support.fleet import allocate, fleet
from tests.support.pages import HTMX, browser_of, held
from tests.support.people import client, person

pytestmark = pytest.mark.django_db(transaction=True)
BODY = {"project": "vision-train", "offering": "l40s/whole", "count": 1}
PASSWORD = "correct horse battery staple"
BUDGETS = {
    "POST /api/v1/allocations": 8,
    "POST /api/v1/allocations, DRA": 8,
    "POST /api/v1/allocations with a key": 13,
    "POST /api/v1/allocations, refused": 9,
    "POST /api/v1/allocations/preview": 5,
    "GET /api/v1/offerings": 5,
    "GET /api/v1/queues/{team}": 7,
    "/": 9,
    "/costs/mine": 19,
    "/allocations": 6,
    "/queues/{team}": 8,
    "/request": 7,
    "a page refused by a rate limit": 2,
    "POST /login": 10,
    "GET /login": 0,
}
"""As measured (docs/appendix/performance.md). A change that adds statements raises its number here, and says so."""


@pytest.fixture
def user(team: Team, project: Project, other_team: Team) -> User:
    fleet(team, other_team)
    heartbeat.beat("worker")
    heartbeat.beat("watcher")
    made = person(team)
    made.set_password(PASSWORD)
    made.save()
    held(allocate(made, project))
    allocate(made, project)
    return made


def routes(user: User) -> dict[str, Callable[[], Any]]:
    rest, browser, nobody = client(user), browser_of(user), Client()
    path = "/api/v1/allocations"

    def post(**changes: Any) -> Any:
        return rest.post(path, {**BODY, **changes}, format="json")

    def refused() -> Any:
        with override_settings(PAGE_REQUESTS_PER_MINUTE=1):
            answer = browser.get("/allocations")
        assert answer.status_code == 429
        return answer

    return {
        "POST /api/v1/allocations": post,
        "POST /api/v1/allocations, DRA": lambda: post(offering="h100/whole"),
        "POST /api/v1/allocations with a key": lambda: rest.post(path, BODY, format="json", HTTP_IDEMPOTENCY_KEY="key"),
        "POST /api/v1/allocations, refused": lambda: post(count=9),
        "POST /api/v1/allocations/preview": lambda: rest.post(f"{path}/preview", BODY, format="json"),
        "GET /api/v1/offerings": lambda: rest.get("/api/v1/offerings"),
        "GET /api/v1/queues/{team}": lambda: rest.get("/api/v1/queues/vision"),
        "/": lambda: browser.get("/"),
        "/costs/mine": lambda: browser.get("/costs/mine", headers=HTMX),
        "/allocations": lambda: browser.get("/allocations"),
        "/queues/{team}": lambda: browser.get("/queues/vision"),
        "/request": lambda: browser.get("/request?project=vision-train"),
        "a page refused by a rate limit": refused,
        "POST /login": lambda: nobody.post("/login", {"username": user.username, "password": PASSWORD}),
        "GET /login": lambda: Client().get("/login"),
    }


def test_a_route_takes_no_more_statements_than_its_budget(user: User) -> None:
    asks = routes(user)
    client(user).get("/api/v1/me")
    asks["/"]()
    found = {}
    for name, ask in asks.items():
        if name == "POST /api/v1/allocations":
            ask()  # the first use of a token in a minute is written down
        with CaptureQueriesContext(connection) as statements:
            assert ask().status_code < 500
        found[name] = len(statements)
    assert {name: number for name, number in found.items() if number > BUDGETS[name]} == {}, found
    assert found.keys() == BUDGETS.keys()


@pytest.mark.parametrize("path", ["/api/v1/me", "/allocations"])
def test_a_request_takes_two_round_trips_to_redis(user: User, path: str) -> None:
    """One for its limits before it, one for its processor time after it."""
    asking = client(user) if path.startswith("/api/") else browser_of(user)
    asking.get(path)
    store = redis.Redis.from_url(django_settings.REDIS_URL)

    def reads() -> int:
        return int(store.info("stats")["total_reads_processed"])

    start, own = reads(), 1
    assert asking.get(path).status_code == 200
    assert reads() - start - own == 2
