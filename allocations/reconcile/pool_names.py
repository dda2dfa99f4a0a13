"""Keeps the resource name of a DRA pool while it is in use, when a DeviceClass gains or loses its extended resource.

Leases and admitted Jobs have their usage in Kueue under the pool's name. If it changed under them, the team would get
its quota a second time under the new name. So the old name stays while anything runs on the flavor, and the nodes say
so.
"""

from collections.abc import Mapping
from dataclasses import replace

from allocations.domain.backend_capabilities import NAMING_PATHS
from allocations.models import Allocation, MirrorObject, WatchState
from quotas.catalog.models import Pool
from quotas.catalog.types import Discovered


def with_kept_names(cluster: str, found: Discovered) -> Discovered:
    """``found``, with the names of before where a pool would change its resource and something stands on its flavor."""
    known = dict(
        Pool.objects.filter(flavor__cluster=cluster, flavor__path__in=NAMING_PATHS).values_list("key", "resources")
    )
    renamed = {
        pool.key: known[pool.key] for pool in found.pools if pool.resources != known.get(pool.key, pool.resources)
    }
    renamed = {key: old for key, old in renamed.items() if len(old) == 1}
    named = {key.partition("/")[0] for key in renamed}
    flavors = named & _in_use(cluster) if named and _knows_classes(cluster) else named
    stays = {key: old for key, old in renamed.items() if key.partition("/")[0] in flavors}
    if not stays:
        return found
    now = {pool.key: pool.resources for pool in found.pools}
    return replace(
        found,
        pools=tuple(replace(pool, resources=stays.get(pool.key, pool.resources)) for pool in found.pools),
        offerings=tuple(
            replace(one, requests=stays[one.pool]) if one.pool in stays and one.requests else one
            for one in found.offerings
        ),
        nodes=tuple(
            replace(node, problem="; ".join(filter(None, (node.problem, _words(node.flavor, stays, now)))))
            for node in found.nodes
        ),
    )


def _words(flavor: str, stays: Mapping[str, Mapping[str, int]], now: Mapping[str, Mapping[str, int]]) -> str:
    """What operators of a node read; empty for one of another flavor."""
    return "; ".join(
        f"its DeviceClass changed: {key} becomes {', '.join(now[key])} once nothing stands on {flavor}, and is counted "
        f"as {', '.join(old)} until then; hide the flavor to let it drain"
        for key, old in sorted(stays.items())
        if key.partition("/")[0] == flavor
    )


def _knows_classes(cluster: str) -> bool:
    """Whether DeviceClasses were ever listed: before that none is known, and that tells nothing."""
    return WatchState.objects.filter(cluster=cluster, kind="DeviceClass").exists()


def _in_use(cluster: str) -> set[str]:
    """Flavors on which an allocation is alive, or a workload has quota."""
    alive = set(Allocation.objects.filter(ended_at=None).values_list("offering__flavor__name", flat=True))
    usage = MirrorObject.objects.filter(cluster=cluster, kind="Workload").exclude(facts__cluster_queue="")
    return alive | {flavor for used in usage.values_list("facts__usage", flat=True) for flavor in used or {}}
