"""One request is followed through the logs of the running portal by its id: of web, worker and watcher."""

import re
from datetime import timedelta
from functools import partial
from uuid import uuid4

import pytest
import requests

from allocations.domain.phases import Phase
from allocations.models import Allocation
from deploy.local.runner import Local
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Scope, User
from tests.support.cluster.allocations import ended, wait_for
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster


def is_logged(local: Local, process: str, event: str, request_id: str) -> bool:
    """Return whether a line of a process' log has this event and this request's id."""
    text = local.home.log(process).read_text(encoding="utf-8", errors="replace")
    return re.search(rf"\[\w+ *\] {event} .*\brequest_id={request_id}\b", text) is not None


def test_the_line_of_a_request_leads_to_those_of_worker_and_watcher(
    local: Local, project: Project, member: User
) -> None:
    _, secret = tenants.issue_token(SYSTEM, member, "followed", [Scope.READ, Scope.REQUEST], timedelta(hours=1))
    headers = {"Authorization": f"Bearer {secret}", "X-Request-ID": f"test-{uuid4().hex}"}
    body = {"project": project.slug, "offering": "l40s/whole"}
    answer = requests.post(f"{local.home.url}/api/v1/allocations", json=body, headers=headers, timeout=30)
    assert (answer.status_code, answer.headers["X-Request-ID"]) == (201, headers["X-Request-ID"])
    row = wait_for(Allocation.objects.get(pk=answer.json()["id"]), Phase.ACTIVE)
    for process, event in (("web", "request"), ("worker", "workqueue.reconciled"), ("watcher", "watch.enqueued")):
        eventually(partial(is_logged, local, process, event, headers["X-Request-ID"]))
    ended(member, row)
