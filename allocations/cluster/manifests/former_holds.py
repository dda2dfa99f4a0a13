"""PriorityClasses and quotas that all allocations of a namespace on one flavor shared, before each had its own.

They stay as long as pods have them, and admit no pod more: such a quota is exactly what its pods still use, and each
allocation's own quota is smaller by what its former pods use. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from allocations.cluster import names
from allocations.domain.objects import ObservedObject, Ref, ResolvedSpec, Snapshot, has_finished


def quota_ref(request: ResolvedSpec) -> Ref:
    return Ref("ResourceQuota", request.namespace, names.former_hold(request.flavor))


def used(snapshot: Snapshot) -> dict[str, Mapping[str, int]]:
    """What a namespace's former pods still use, by flavor and resource; a flavor whose class is still given stays."""
    pods = _pods(snapshot)
    given = {
        name for guard in snapshot.of_kind("GpuProject") for name in guard.facts.get("classes", ()) if _is_former(name)
    }
    return {
        name.removeprefix(names.HOLD): _amounts(pod for pod in pods if pod.facts["class"] == name)
        for name in given | {pod.facts["class"] for pod in pods}
    }


def used_by(request: ResolvedSpec, snapshot: Snapshot) -> Counter[str]:
    """What the allocation's former pods still use, by resource."""
    return _amounts(pod for pod in _pods(snapshot) if pod.allocation == request.name)


def _pods(snapshot: Snapshot) -> list[ObservedObject]:
    unfinished = (seen for seen in snapshot.of_kind("Pod") if not has_finished(seen.facts))
    return [seen for seen in unfinished if _is_former(seen.facts.get("class", ""))]


def _is_former(name: str) -> bool:
    return name.startswith(names.HOLD) and not name.startswith(names.HOLD_SLOT)


def _amounts(pods: Iterable[ObservedObject]) -> Counter[str]:
    return sum((Counter(pod.facts["gpus"]) for pod in pods), Counter())
