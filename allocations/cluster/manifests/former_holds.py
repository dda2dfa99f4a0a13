"""Reads the use of former PriorityClasses and quotas, which a flavor's allocations in a namespace shared. Pure.

They remain while pods use them, and admit no other pod: such a quota is exactly what its pods still use, and each
allocation's own quota is reduced by what its pods of the former class use.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from allocations.cluster import names
from allocations.domain.objects import ObservedObject, Ref, ResolvedSpec, Snapshot, has_finished
from allocations.domain.observed_facts import gpu_project_facts, pod_facts


def quota_ref(spec: ResolvedSpec) -> Ref:
    """Return the former quota of the allocation's flavor."""
    return Ref("ResourceQuota", spec.namespace, names.former_hold(spec.flavor))


def used(snapshot: Snapshot) -> dict[str, Mapping[str, int]]:
    """Return what a namespace's pods of former classes use, by flavor and resource.

    A flavor whose former class a GpuProject still sets on pods is included, even if no pod uses it.
    """
    pods = _pods(snapshot)
    assigned = {
        name
        for guard in snapshot.of_kind("GpuProject")
        for name in gpu_project_facts(guard).get("classes", ())
        if _is_former(name)
    }
    return {
        name.removeprefix(names.HOLD): _amounts(pod for pod in pods if pod_facts(pod)["class"] == name)
        for name in assigned | {pod_facts(pod)["class"] for pod in pods}
    }


def used_by(spec: ResolvedSpec, snapshot: Snapshot) -> Counter[str]:
    """Return what the allocation's pods of a former class use, by resource."""
    return _amounts(pod for pod in _pods(snapshot) if pod.allocation == spec.name)


def _pods(snapshot: Snapshot) -> list[ObservedObject]:
    former = (pods for name, pods in snapshot.pods_by_class.items() if _is_former(name))
    return [pod for pods in former for pod in pods if not has_finished(pod_facts(pod))]


def _is_former(name: str) -> bool:
    return name.startswith(names.HOLD) and not name.startswith(names.HOLD_SLOT)


def _amounts(pods: Iterable[ObservedObject]) -> Counter[str]:
    return sum((Counter(pod_facts(pod)["gpus"]) for pod in pods), Counter())
