"""kill -9 of each process of the portal, during its work."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import pytest
import requests

from allocations.models import Allocation
from deploy.local.runner import Local
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, User
from tests.support.cluster.waiting import eventually
from tests.support.faults.crowd import Crowd
from tests.support.faults.fault import IN_FLIGHT, Fault

CUT_OFF = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
"""What a client meets whose server is killed: before the answer, or in it."""
pytestmark = pytest.mark.faults
AT_ONCE = 8


def test_without_any_fault_everything_is_right(under_fault: Fault) -> None:
    """The reference for the other figures: how long the work takes on this machine."""
    with under_fault():
        pass


@pytest.mark.parametrize("process", ["worker", "watcher", "beat"])
def test_a_killed_process_loses_and_doubles_nothing(
    process: str, local: Local, crowd: Crowd, under_fault: Fault
) -> None:
    with under_fault():
        local.kill(process)
        crowd.release(crowd.live()[:10])
        local.wait_ready(process)


def test_a_killed_web_process_answers_each_repeated_request_once(
    local: Local, crowd: Crowd, under_fault: Fault
) -> None:
    """The client repeats each request until it is answered, with the same Idempotency-Key."""
    planned, url = crowd.requests(IN_FLIGHT), f"{local.home.url}/api/v1/allocations"
    tokens = {user: _token(user) for user in {user for user, _, _ in planned}}

    def send_request(one: tuple[User, Project, str]) -> str:
        user, project, offering = one
        headers = {"Authorization": f"Bearer {tokens[user]}", "Idempotency-Key": str(uuid4())}
        body = {"project": project.slug, "offering": offering}
        return eventually(lambda: _post(url, headers, body), *CUT_OFF, within_s=120)

    with under_fault(requests=0), ThreadPoolExecutor(AT_ONCE) as pool:
        before = Allocation.objects.filter(project__in=crowd.projects).count()
        futures = [pool.submit(send_request, one) for one in planned]
        futures[len(futures) // 4].result()
        local.kill("web")
        ids = {future.result() for future in futures}
        local.wait_ready("web")
        assert len(ids) == IN_FLIGHT
        assert Allocation.objects.filter(project__in=crowd.projects).count() == before + IN_FLIGHT


def _post(url: str, headers: dict[str, str], body: dict[str, str]) -> str:
    """Return the id of the allocation; empty if the answer says to retry."""
    answer = requests.post(url, json=body, headers=headers, timeout=10)
    if answer.status_code == 503 or (answer.status_code == 409 and answer.json()["reason"] == "in_progress"):
        return ""
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def _token(user: User) -> str:
    return tenants.issue_token(SYSTEM, user, "fault test", ["read", "request"], timedelta(hours=1))[1]
