"""Checks with the API server, as local administrator, that no object of the tour is left."""

from collections.abc import Iterable

from deploy.local.errors import LocalError
from deploy.local.tour.kube import Kubectl

KINDS = ("workloads.kueue.x-k8s.io", "resourceclaims", "pods")


def nothing_left(admin: Kubectl, namespace: str, names: Iterable[str]) -> list[str]:
    """Return sentences of evidence; raise LocalError naming what is left. `names` are the allocations'."""
    asked, where = set(names), f"--namespace={namespace}"
    said = []
    for kind in KINDS:
        left = [
            row["metadata"]["name"]
            for row in admin.get(kind, where)["items"]
            if row["metadata"].get("labels", {}).get("gpu-portal.io/allocation") in asked
        ]
        if left:
            raise LocalError(f"{kind} are left in {namespace}: {', '.join(left)}")
        said.append(f"no {kind} of {', '.join(sorted(asked))} in {namespace}")
    guard = admin.get("gpuproject", "gpu-portal", where)
    others = guard["spec"].get("allocations", {})
    if asked & set(others):
        raise LocalError(f"the GpuProject of {namespace} still lists {', '.join(asked & set(others))}")
    said.append(f"GpuProject lists {', '.join(others) or 'no allocation'}")
    for quota in admin.get("resourcequotas", where, "--selector=gpu-portal.io/managed=true")["items"]:
        name, hard = quota["metadata"]["name"], quota["spec"]["hard"]
        if name.startswith("gpu-portal-hold-"):
            if not others and any(amount != "0" for amount in hard.values()):
                raise LocalError(f"the quota {name} of {namespace} still gives {hard}")
            said.append(f"quota {name} gives {hard}")
    return said
