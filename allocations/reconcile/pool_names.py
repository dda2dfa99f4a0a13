"""Keeps the resource name of a DRA pool while it is in use, when a DeviceClass gains or loses its extended resource.

Kueue counts leases and admitted Jobs under the pool's name. If that name changed, the team would get its quota a second
time under the new one. So the old name stays while anything runs on the flavor, and the catalogue's nodes say so.
"""

from collections.abc import Mapping
from dataclasses import replace

from allocations.domain.backend_capabilities import NAMING_PATHS
from allocations.models import Allocation, MirrorObject, WatchState
from quotas.catalog.models import Pool
from quotas.catalog.types import Discovered


def with_kept_names(cluster: str, found: Discovered) -> Discovered:
    """Return ``found`` with the previous resource names of pools whose flavor is in use."""
    previous = dict(
        Pool.objects.filter(flavor__cluster=cluster, flavor__path__in=NAMING_PATHS).values_list("key", "resources")
    )
    renamed = {
        pool.key: previous[pool.key] for pool in found.pools if pool.resources != previous.get(pool.key, pool.resources)
    }
    renamed = {key: old for key, old in renamed.items() if len(old) == 1}
    renamed_flavors = {key.partition("/")[0] for key in renamed}
    flavors = renamed_flavors & _in_use(cluster) if renamed_flavors and _classes_listed(cluster) else renamed_flavors
    kept_names = {key: old for key, old in renamed.items() if key.partition("/")[0] in flavors}
    if not kept_names:
        return found
    current = {pool.key: pool.resources for pool in found.pools}
    return replace(
        found,
        pools=tuple(replace(pool, resources=kept_names.get(pool.key, pool.resources)) for pool in found.pools),
        offerings=tuple(
            replace(one, requests=kept_names[one.pool]) if one.pool in kept_names and one.requests else one
            for one in found.offerings
        ),
        nodes=tuple(
            replace(node, problem="; ".join(filter(None, (node.problem, _problem(node.flavor, kept_names, current)))))
            for node in found.nodes
        ),
    )


def _problem(flavor: str, kept_names: Mapping[str, Mapping[str, int]], current: Mapping[str, Mapping[str, int]]) -> str:
    """Return the sentence that a flavor's nodes show to operators; "" if no pool of it keeps its name."""
    return "; ".join(
        f"its DeviceClass changed: {key} becomes {', '.join(current[key])} once nothing is held of {flavor}, and is "
        f"counted as {', '.join(old)} until then; hide the flavor to let it drain"
        for key, old in sorted(kept_names.items())
        if key.partition("/")[0] == flavor
    )


def _classes_listed(cluster: str) -> bool:
    """Return whether DeviceClasses have been listed; before that, a missing one means nothing."""
    return WatchState.objects.filter(cluster=cluster, kind="DeviceClass").exists()


def _in_use(cluster: str) -> set[str]:
    """Return the flavors on which an allocation is live, or a workload has quota reserved."""
    live = set(Allocation.objects.filter(ended_at=None).values_list("offering__flavor__name", flat=True))
    usage = MirrorObject.objects.filter(cluster=cluster, kind="Workload").exclude(facts__cluster_queue="")
    return live | {flavor for used in usage.values_list("facts__usage", flat=True) for flavor in used or {}}
