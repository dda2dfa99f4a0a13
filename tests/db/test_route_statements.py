"""The SQL statements of a route, BEGIN and COMMIT included: while processors are busy, each waits for one in turn.

They are as many with 50 rows as with one of what the route shows, and at most those of `BUDGETS`.
"""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
import redis
from django.conf import settings as django_settings
from django.test import Client
from django.test.utils import override_settings

from allocations.models import Allocation
from portal.core import heartbeat
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from quotas.catalog.models import Offering
from tests.support.fleet import allocate, fleet
from tests.support.pages import HTMX, browser_of, held
from tests.support.people import client, person
from tests.support.queued import crowd, job
from tests.support.rows_read import statements

pytestmark = pytest.mark.django_db(transaction=True)
BODY = {"project": "vision-train", "offering": "l40s/whole", "count": 1}
PASSWORD = "correct horse battery staple"
BUDGETS = {
    "POST /api/v1/allocations": 10,
    "POST /api/v1/allocations, DRA": 10,
    "POST /api/v1/allocations with a key": 20,
    "POST /api/v1/allocations, refused": 15,
    "POST /api/v1/allocations/preview": 10,
    "GET /api/v1/offerings": 10,
    "GET /api/v1/queues/{team}": 20,
    "/": 15,
    "/costs/mine": 25,
    "/allocations": 10,
    "/queues/{team}": 20,
    "/request": 10,
    "a page refused by a rate limit": 5,
    "POST /login": 15,
    "GET /login": 0,
}
"""A quarter more than measured (docs/appendix/performance.md), in fives, since a new feature may need one more."""


@pytest.fixture
def user(team: Team, project: Project, other_team: Team) -> User:
    fleet(team, other_team)
    heartbeat.beat("worker")
    heartbeat.beat("watcher")
    made = person(team)
    made.set_password(PASSWORD)
    made.save()
    held(allocate(made, project, count=4))  # all that the team may hold, so that no request can be had now
    allocate(made, project)
    job("train", project.namespace)
    return made


def grow(user: User, project: Project) -> None:
    """Add 49 of each: the person's allocations that are held, and those that wait, their team's Jobs, and flavors."""
    more = tenants.create_project(SYSTEM, project.team, "vision-crowd", "More")
    crowd(user, more, Offering.objects.get(key="l40s/whole"), 4 * 49)
    for row in Allocation.objects.filter(project=more)[:49]:
        held(row)
    fleet(more_flavors=49, prices={})


def routes(user: User) -> dict[str, Callable[[], Any]]:
    rest, browser, nobody = client(user), browser_of(user), Client()
    path = "/api/v1/allocations"

    def post(key: str = "", **changes: Any) -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        return rest.post(path, {**BODY, **changes}, format="json", headers=headers)

    def refused_by_rate() -> None:
        with override_settings(PAGE_REQUESTS_PER_MINUTE=1):
            assert browser.get("/allocations").status_code == 429

    def refused_by_limit() -> None:
        assert post(count=9).status_code == 409

    return {
        "POST /api/v1/allocations": post,
        "POST /api/v1/allocations, DRA": lambda: post(offering="h100/whole"),
        "POST /api/v1/allocations with a key": lambda: post(uuid4().hex),
        "POST /api/v1/allocations, refused": refused_by_limit,
        "POST /api/v1/allocations/preview": lambda: rest.post(f"{path}/preview", BODY, format="json"),
        "GET /api/v1/offerings": lambda: rest.get("/api/v1/offerings"),
        "GET /api/v1/queues/{team}": lambda: rest.get("/api/v1/queues/vision"),
        "/": lambda: browser.get("/"),
        "/costs/mine": lambda: browser.get("/costs/mine", headers=HTMX),
        "/allocations": lambda: browser.get("/allocations"),
        "/queues/{team}": lambda: browser.get("/queues/vision"),
        "/request": lambda: browser.get("/request?project=vision-train"),
        "a page refused by a rate limit": refused_by_rate,
        "POST /login": lambda: nobody.post("/login", {"username": user.username, "password": PASSWORD}),
        "GET /login": lambda: Client().get("/login"),
    }


def test_a_route_takes_as_many_statements_with_50_rows_as_with_one_and_no_more_than_its_budget(
    user: User, project: Project
) -> None:
    asks = routes(user)
    few = {name: statements(ask) for name, ask in asks.items()}
    grow(user, project)
    many = {name: statements(ask) for name, ask in asks.items()}
    assert many == few
    assert {name: number for name, number in many.items() if number > BUDGETS[name]} == {}, many
    assert many.keys() == BUDGETS.keys()


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
