"""Counts SQL queries of each route with one allocation and with many: the number must not grow."""

from collections.abc import Iterator
from datetime import timedelta

from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from allocations.models import Allocation
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Scope, User

LISTS = (
    "me",
    "projects",
    "members",
    "offerings",
    "allocations?limit=100",
    "queues/vision",
    "costs",
    "costs?aggregate=allocation",
    "prices",
    "nodes",
    "devices",
)
OF_ONE = ("", "/events", "/manifests")


def counted(person: User) -> dict[str, int]:
    """Return the SQL queries of a GET by ``person``, by route; the connection's own upkeep is not counted."""
    _, secret = tenants.issue_token(SYSTEM, person, "bench", [Scope.READ], timedelta(minutes=10))
    api = APIClient(SERVER_NAME="127.0.0.1")
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    api.get("/api/v1/me")  # notes the token's use, once a minute
    return {route: _queries(api, path) for route, path in _routes()}


def _routes() -> Iterator[tuple[str, str]]:
    yield from ((f"/{path}", f"/api/v1/{path}") for path in LISTS)
    newest = Allocation.objects.order_by("-created_at").values_list("pk", flat=True).first()
    yield from ((f"/allocations/{{id}}{part}", f"/api/v1/allocations/{newest}{part}") for part in OF_ONE)


def _queries(api: APIClient, path: str) -> int:
    with CaptureQueriesContext(connection) as caught:
        answer = api.get(path)
    if answer.status_code != 200:
        raise RuntimeError(f"{path}: {answer.status_code} {answer.content.decode()[:300]}")
    return len(caught)
