"""Each process of the portal is replaced under twenty requests a second: none is lost, and all work is done."""

from collections import deque
from contextlib import ExitStack
from datetime import timedelta
from itertools import count

import pytest
import requests

from deploy.local.runner import Local
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from tests.support.cluster.waiting import eventually
from tests.support.faults.crowd import Crowd
from tests.support.faults.fault import Fault
from tests.support.steady_load import steady_load
from tests.support.web_process import web_process

pytestmark = pytest.mark.faults
URL = "/api/v1/allocations"
CONFLICT = 409
"""The limit of live allocations, which what was released counts against until a worker has taken it down."""
AT_LEAST = 20


class Person:
    """Somebody who lists, requests and releases in turn."""

    def __init__(self, token: str, project: str) -> None:
        self._headers, self._project = {"Authorization": f"Bearer {token}"}, project
        self._turn, self._made = count(), deque[str]()

    def __call__(self, session: requests.Session, address: str) -> requests.Response:
        match next(self._turn) % 4:
            case 0:
                body = {"project": self._project, "offering": "l40s/whole"}
                made = session.post(f"{address}{URL}", json=body, headers=self._headers, timeout=30)
                if made.status_code == 201:
                    self._made.append(made.json()["id"])
                return made
            case 2 if self._made:
                released = f"{address}{URL}/{self._made.popleft()}/release"
                return session.post(released, json={}, headers=self._headers, timeout=30)
            case _:
                return session.get(f"{address}{URL}", headers=self._headers, timeout=30)


def replace(local: Local, process: str) -> None:
    """Stop a process by SIGTERM, wait for its end, and start it again."""
    local.stop(process)
    eventually(lambda: process not in local.pids())
    local.start(process)
    local.wait_ready(process)


def test_no_request_is_lost_while_each_process_is_replaced(
    local: Local, crowd: Crowd, under_fault: Fault, monkeypatch: pytest.MonkeyPatch, figures: list[str]
) -> None:
    monkeypatch.setenv("DRAIN_S", "2")
    [(user, project, _)] = crowd.requests(1)
    _, token = tenants.issue_token(SYSTEM, user, "rolling restart", ["read", "request"], timedelta(hours=1))
    with under_fault(requests=0), ExitStack() as stack:
        first, second = stack.enter_context(ExitStack()), stack.enter_context(ExitStack())
        addresses = [f"http://127.0.0.1:{one.enter_context(web_process())}" for one in (first, second)]
        with steady_load(addresses, Person(token, project.slug)) as load:
            for process in ("worker", "watcher", "beat"):
                replace(local, process)
            load.addresses.append(f"http://127.0.0.1:{stack.enter_context(web_process())}")
            first.close()
    assert load.lost == []
    assert set(load.answers) <= {200, 201, CONFLICT}
    assert load.answers.count(201) > AT_LEAST
    figures.append(f"test_no_request_is_lost_while_each_process_is_replaced: {len(load.answers)} requests answered")
