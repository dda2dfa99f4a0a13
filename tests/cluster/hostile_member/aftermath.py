"""The state after the attack: the member deletes the objects, the project is archived, and everything is as
before.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import requests
from prometheus_client.parser import text_string_to_metric_families
from urllib3.exceptions import HTTPError

from allocations.models import Allocation, AppliedObject
from allocations.projects import archive as archiving
from portal.tenants.models import Project, User
from quotas.metering.models import UsageInterval
from tests.cluster.hostile_member import logs
from tests.cluster.hostile_member.objects import PATHS
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.waiting import eventually

DELETED_WITHIN_S = 180.0
GONE_WITHIN_S = 240.0
WELL_WITHIN_S = 60.0
SHOWN = 3
"""How many pods that are left are shown."""
FAULTS = ("gpu_portal_over_lease", "gpu_portal_unbilled", "gpu_portal_failing_targets")
NOT_THE_PORTALS = "!gpu-portal.io/holder,!gpu-portal.io/managed"


def delete_own(tenant: ApiClient, namespace: str) -> None:
    """Delete every object with the member's own permissions; raise AssertionError if the API server refuses."""

    def is_deleted(path: str) -> bool:
        options, query = {"propagationPolicy": "Background"}, {"labelSelector": NOT_THE_PORTALS}
        answer = tenant.call("DELETE", path.format(namespace), options, query)
        assert answer.status == 200, f"DELETE {path}: {answer.status} {answer.message}"
        return True

    for path in reversed(PATHS.values()):
        deleted = partial(is_deleted, path)
        eventually(deleted, AssertionError, HTTPError, within_s=DELETED_WITHIN_S, every_s=1.0)


def archive(operator: User, project: Project, admin: ApiClient) -> None:
    """Archive the project and wait until nothing of it is left; raise AssertionError with what is."""
    archiving.archive(operator, project)

    def is_gone() -> bool:
        left = [*remains(project, admin)]
        assert not left, "; ".join(left)
        return True

    eventually(is_gone, AssertionError, within_s=GONE_WITHIN_S, every_s=1.0)


def remains(project: Project, admin: ApiClient) -> Iterator[str]:
    if admin.call("GET", f"/api/v1/namespaces/{project.namespace}").status != 404:
        project.refresh_from_db()
        words = archiving.remaining([project]).get(project.slug, [])
        yield f"namespace {project.namespace} is there {'; '.join(words)}".rstrip()
    for pod in admin.objects("pods", project.namespace)[:SHOWN]:
        yield f"pod {pod['metadata']}: {pod['spec'].get('nodeName', 'on no node')}, {pod['status'].get('phase')}"
    for row in Allocation.objects.filter(project=project, ended_at=None):
        yield f"allocation {row.name} is {row.phase} ({row.reason})"
    for interval in UsageInterval.objects.filter(namespace=project.namespace, end=None):
        yield f"{interval.count} {interval.offering} are charged since {interval.start:%T}"
    for applied in AppliedObject.objects.filter(target=f"local/project:{project.slug}"):
        yield f"{applied.kind} {applied.name} is still kept"


def wait_until_well(url: str, metrics_token: str, before: Mapping[str, float]) -> None:
    """Wait until the portal's metrics show no fault that they did not show ``before``; raise AssertionError with the
    others.
    """

    def is_well() -> bool:
        wrong = [*ailments(url, metrics_token, before)]
        assert not wrong, "; ".join(wrong)
        return True

    eventually(is_well, AssertionError, within_s=WELL_WITHIN_S, every_s=1.0)


def ailments(url: str, metrics_token: str, before: Mapping[str, float]) -> Iterator[str]:
    ready = requests.get(f"{url}/readyz", timeout=30).json()
    if ready["status"] != "ready":
        yield f"the portal is {ready['status']}: {ready['checks']}"
    for name, value in gauges(url, metrics_token).items():
        if name.partition("{")[0] in FAULTS and value > before.get(name, 0):
            yield f"{name} is {value:g}"


def gauges(url: str, metrics_token: str) -> dict[str, float]:
    """Return the portal's metrics by name and labels."""
    answer = requests.get(f"{url}/metrics", headers={"Authorization": f"Bearer {metrics_token}"}, timeout=30)
    assert answer.status_code == 200, answer.text
    samples = [one for family in text_string_to_metric_families(answer.text) for one in family.samples]
    return {f"{one.name}{dict(one.labels)}" if one.labels else one.name: one.value for one in samples}


class LogMarks:
    """The length of each log at the time of the mark."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = dict(files)
        self._marks = {name: self._length(file) for name, file in files.items()}

    def errors_since(self, names: tuple[str, ...]) -> list[str]:
        """Return errors logged since, except those about objects with one of ``names``."""
        found = []
        for name, file in self._files.items():
            with file.open("rb") as log:
                log.seek(self._marks[name])
                text = log.read().decode(errors="replace")
            found += [f"{name}: {entry[:2000]}" for entry in logs.unexplained(text, names)]
        return found

    @staticmethod
    def _length(file: Path) -> int:
        return file.stat().st_size if file.exists() else 0
