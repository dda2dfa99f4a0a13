"""Checks with the API server, as local administrator, that no object of the tour is left."""

from collections.abc import Iterable

from deploy.local.errors import LocalError
from deploy.local.tour.kube import Kubectl

KINDS = ("workloads.kueue.x-k8s.io", "resourceclaims", "pods")


def nothing_left(admin: Kubectl, namespace: str, names: Iterable[str]) -> list[str]:
    """Return sentences of evidence; raise LocalError naming what is left. `names` are the allocations'."""
    expected, in_namespace = set(names), f"--namespace={namespace}"
    evidence = []
    for kind in KINDS:
        remaining = [
            row["metadata"]["name"]
            for row in admin.get(kind, in_namespace)["items"]
            if row["metadata"].get("labels", {}).get("gpu-portal.io/allocation") in expected
        ]
        if remaining:
            raise LocalError(f"{kind} are left in {namespace}: {', '.join(remaining)}")
        evidence.append(f"no {kind} of {', '.join(sorted(expected))} in {namespace}")
    guard = admin.get("gpuproject", "gpu-portal", in_namespace)
    others = guard["spec"].get("allocations", {})
    if expected & set(others):
        raise LocalError(f"the GpuProject of {namespace} still lists {', '.join(expected & set(others))}")
    evidence.append(f"GpuProject lists {', '.join(others) or 'no allocation'}")
    for quota in admin.get("resourcequotas", in_namespace, "--selector=gpu-portal.io/managed=true")["items"]:
        name, hard = quota["metadata"]["name"], quota["spec"]["hard"]
        if name.startswith("gpu-portal-hold-"):
            if not others and any(amount != "0" for amount in hard.values()):
                raise LocalError(f"the quota {name} of {namespace} still gives {hard}")
            evidence.append(f"quota {name} gives {hard}")
    return evidence
