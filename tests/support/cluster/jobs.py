"""Tenants' own Jobs: the guide's example, submitted as a member, and their billing."""

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from allocations.queues import jobs
from allocations.queues.jobs import Job, State
from deploy.local.runner import Local
from portal.tenants.models import Project, User
from quotas.metering.models import UsageInterval
from tests.support.cluster.api_client import NAMESPACED, PORTAL, ApiClient
from tests.support.cluster.tenants import token_of
from tests.support.cluster.waiting import eventually

GUIDE = Path("docs/how-to/jobs.md").read_text(encoding="utf-8")
GPU = "nvidia.com/gpu"
Submit = Callable[..., str]


@pytest.fixture
def submit(local: Local, member: User, project: Project, admin: ApiClient) -> Iterator[Submit]:
    """Yield a function that submits the guide's Job with changes, as the member, and returns its uid; delete them at
    the end. ``past_guards``: as the portal, which the guards let create what they refuse of its pods.
    """
    tenant, portal = ApiClient(local.home, token_of(member)), ApiClient(local.home, acting_as=PORTAL)

    def create(
        name: str, *, run_for: str = "1h", pods: int = 1, resource: str = GPU, past_guards: bool = False, **pod: Any
    ) -> str:
        body = deepcopy(guided())
        body["metadata"]["name"] = name
        body["spec"] |= {"parallelism": pods, "completions": pods}
        body["spec"]["template"]["metadata"] = {"annotations": {"gpu-portal.io/run-for": run_for}}
        body["spec"]["template"]["spec"] |= pod
        body["spec"]["template"]["spec"]["containers"][0]["resources"] = {
            which: {resource: "1"} for which in ("requests", "limits")
        }
        return str((portal if past_guards else tenant).created(body, project.namespace)["metadata"]["uid"])

    yield create
    admin.call("DELETE", NAMESPACED["Job"].format(project.namespace), {"propagationPolicy": "Background"})
    eventually(lambda: not jobs_of(project))
    eventually(lambda: not UsageInterval.objects.filter(project=project.slug, member="", end=None).exists())


def guided() -> dict[str, Any]:
    """Return the Job of the guide."""
    found = re.search(r"```yaml\n(.*?)```", GUIDE, re.S)
    assert found
    return dict(yaml.safe_load(found[1]))


def jobs_of(project: Project) -> list[Job]:
    return jobs.read(jobs.rows(Project.objects.filter(pk=project.pk)))


def one(project: Project, uid: str) -> Job | None:
    return next((job for job in jobs_of(project) if str(job.uid) == uid), None)


def assert_charged_once(uid: str) -> None:
    """Assert that both GPUs, no more and no less, are charged from admission until their release, together or one by
    one.
    """
    rows = list(UsageInterval.objects.filter(holder_id=uid, end__isnull=False))
    moments = sorted({moment for row in rows for moment in (row.start, row.end) if moment})
    bills = [sum(row.count for row in rows if row.end and row.start <= moment < row.end) for moment in moments]
    # A deleted Job's quota goes back before its pods have ended: each device is then charged until its claim is gone.
    # Of a Job that finishes, Kueue takes back the quota of the pod that is done first.
    assert bills[0] == 2
    assert bills[-1] == 0
    assert bills == sorted(bills, reverse=True)


def become(project: Project, uid: str, state: State, reason: str = "") -> Job:
    def look() -> Job | None:
        job = one(project, uid)
        return job if job and job.state == state and job.reason in (reason, reason or job.reason) else None

    found = eventually(look)
    assert found is not None
    return found
