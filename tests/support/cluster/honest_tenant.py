"""Random requests, releases and queued Jobs of a member who tries nothing forbidden, for tests of billing.

Each action returns a description of itself.
"""

from random import Random

from allocations.models import Allocation
from allocations.requests import services
from portal.core.errors import Refused
from portal.tenants.models import Project, User
from tests.support.cluster.allocations import request_slices
from tests.support.cluster.api_client import MERGE_PATCH, NAMESPACED, ApiClient, Object
from tests.support.cluster.manifests import L40S, PAUSE, QUEUE, SAFE, SAFE_POD

OFFERINGS = ("l40s/whole", "t4/shared", "a100/mig-1g.10gb", "h100/whole", "h100/mig-3g.40gb")
RUNS: dict[str, dict[str, str]] = {
    "runs on": {},
    "finishes": {"gpu-portal.io/run-for": "3s"},
    "fails": {"gpu-portal.io/run-for": "2s", "gpu-portal.io/exit-code": "1"},
    "ignores SIGTERM": {"gpu-portal.io/ignore-sigterm": "true"},
    "never binds": {},
}
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/workloads"


class HonestTenant:
    def __init__(self, rng: Random, member: User, tenant: ApiClient, admin: ApiClient) -> None:
        """``tenant`` has the member's token; ``admin`` evicts, as an operator does."""
        self._rng, self._member, self._tenant, self._admin = rng, member, tenant, admin
        self._number = 0

    def act(self, project: Project) -> str:
        actions = [self.request, self.release, self.submit_job, self.delete_job, self.evict_job]
        return self._rng.choices(actions, [8, 5, 8, 2, 2])[0](project)

    def request(self, project: Project) -> str:
        offering, count, spread = self._rng.choice(OFFERINGS), self._rng.randint(1, 3), self._rng.random() < 0.3
        try:
            row = request_slices(self._member, project, offering, count, constraints={"spread": spread})
        except Refused as refusal:
            return f"asks for {count} {offering}: {refusal}"
        return f"asks for {count} {offering} as {row.name}"

    def release(self, project: Project) -> str:
        rows = Allocation.objects.filter(project=project, desired=Allocation.Desired.HELD).order_by("created_at")
        if not rows:
            return "has nothing to release"
        row = self._rng.choice(list(rows))
        services.release(self._member, row)
        return f"releases {row.name}"

    def submit_job(self, project: Project) -> str:
        self._number += 1
        behaviour, resource = (
            self._rng.choice(list(RUNS)),
            self._rng.choice(["nvidia.com/gpu", "nvidia.com/gpu.shared"]),
        )
        body = job(f"job-{self._number}", self._rng.randint(1, 3), resource, behaviour)
        answer = self._tenant.call("POST", NAMESPACED["Job"].format(project.namespace), body)
        assert answer.status == 201, answer.message
        return f"submits job-{self._number}, which {behaviour}, on {resource}"

    def delete_job(self, project: Project) -> str:
        path = NAMESPACED["Job"].format(project.namespace)
        names = sorted(found["metadata"]["name"] for found in self._tenant.items(path))
        if not names:
            return "has no Job to delete"
        name = self._rng.choice(names)
        self._tenant.call("DELETE", f"{path}/{name}", {"propagationPolicy": "Background"})
        return f"deletes {name}"

    def evict_job(self, project: Project) -> str:
        path = WORKLOADS.format(project.namespace)
        found = [one for one in self._admin.items(path) if "ownerReferences" in one["metadata"]]
        if not found:
            return "has no Job to evict"
        name = self._rng.choice(sorted(one["metadata"]["name"] for one in found))
        self._admin.call("PATCH", f"{path}/{name}", {"spec": {"active": False}}, content_type=MERGE_PATCH)
        return f"loses {name}"


def job(name: str, pods: int, resource: str, behaviour: str) -> Object:
    """Return a queued Job of this many pods with one slice each; ``behaviour`` is one of RUNS."""
    amounts = {resource: "1"}
    node = {"example.com/room": "none"} if behaviour == "never binds" else {}
    spec: Object = {
        "restartPolicy": "Never",
        "securityContext": SAFE_POD,
        "terminationGracePeriodSeconds": 4,
        "nodeSelector": {**(L40S if resource == "nvidia.com/gpu" else {}), **node},
        "containers": [
            {
                "name": "main",
                "image": PAUSE,
                "securityContext": SAFE,
                "resources": {"requests": amounts, "limits": amounts},
            }
        ],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {QUEUE: "gpu"}},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "backoffLimit": 1,
            "template": {"metadata": {"annotations": RUNS[behaviour]}, "spec": spec},
        },
    }
