"""The portal's side: a POST over a keep-alive connection, and the allocation's row read until it is active."""

import json
import time
from collections.abc import Mapping
from uuid import UUID

import urllib3
from django.db import connection

from allocations.domain.phases import Phase
from portal.core import clock
from portal.core.models import WorkItem

WITHIN_S = 180
EVERY_S = 0.002
CONNECTIONS = 8


class Web:
    """A REST client with one person's token."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        headers = {"Authorization": f"Bearer {token}"}
        self._pool = urllib3.PoolManager(headers=headers, retries=False, timeout=30, maxsize=CONNECTIONS)

    def hold(self, body: Mapping[str, object], every_s: float = EVERY_S) -> tuple[UUID, float]:
        """Return the allocation, and the seconds from the POST until its row is active.

        The row is read, not the page: frequent reads over REST would take CPU from what is measured. A person would add
        one GET.
        """
        start = time.perf_counter()
        id_ = self.request(body)
        _until(id_, Phase.ACTIVE, every_s)
        return id_, time.perf_counter() - start

    def request(self, body: Mapping[str, object]) -> UUID:
        """Return the allocation as soon as it is accepted."""
        return UUID(self._post("/api/v1/allocations", body)["id"])

    def request_release(self, id_: UUID) -> None:
        """Release the allocation, and return as soon as that is accepted."""
        self._post(f"/api/v1/allocations/{id_}/release", {})

    def release(self, id_: UUID) -> None:
        """Release the allocation, and wait until it has ended and nothing is due any more."""
        self.give_back(id_)
        quiet()

    def give_back(self, id_: UUID) -> None:
        """Release the allocation and wait until it has ended."""
        self.request_release(id_)
        _until(id_, Phase.ENDED, every_s=0.05)

    def _post(self, path: str, body: Mapping[str, object]) -> dict[str, str]:
        answer = self._pool.request("POST", f"{self._url}{path}", json=body)
        if answer.status >= 300:
            raise RuntimeError(f"{path}: {answer.status} {answer.data.decode()}")
        document: dict[str, str] = json.loads(answer.data)
        return document


def quiet() -> None:
    """Wait until nothing is due, since concurrent work would be measured too."""
    deadline = time.monotonic() + WITHIN_S
    while WorkItem.objects.filter(due_at__lte=clock.now()).exists():
        if time.monotonic() > deadline:
            raise TimeoutError("the due list does not become empty")
        time.sleep(0.05)


def _until(id_: UUID, phase: Phase, every_s: float = EVERY_S) -> None:
    deadline = time.monotonic() + WITHIN_S
    with connection.cursor() as cursor:
        while True:
            cursor.execute("SELECT phase, reason FROM allocations_allocation WHERE id = %s", [id_])
            now, reason = cursor.fetchone()
            if now == phase:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"{id_} is {now} ({reason}), not {phase}")
            time.sleep(every_s)
