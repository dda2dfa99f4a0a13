"""Builds Kueue objects from limits: a Cohort per department, a ClusterQueue per team, a ResourceFlavor per flavor.
Pure.

Kueue v1beta2: a resource and a flavor belong to one resource group of a ClusterQueue only, and every flavor of a group
names all its covered resources. So groups are the connected components of the flavor-resource graph, and a flavor has
zero quota of what it lacks. Source: Kueue v0.19, apis/kueue/v1beta2/clusterqueue_types.go.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from quotas.limits import names
from quotas.limits.tree import ZERO_QUOTA, Quota

Manifest = dict[str, Any]

API_VERSION = "kueue.x-k8s.io/v1beta2"
MAX_GROUPS = 16
MAX_RESOURCES = 64
MAX_FLAVORS = 64


@dataclass(frozen=True)
class FlavorShape:
    """A flavor as Kueue needs it: its nodes, and what pods must tolerate there."""

    name: str
    node_selector: Mapping[str, str]
    tolerations: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True)
class PoolShape:
    """A pool as Kueue needs it: what one unit of it amounts to, {resource: integer}."""

    key: str
    flavor: str
    resources: Mapping[str, int]


class NotRepresentable(ValueError):
    """The pools do not fit into one ClusterQueue of Kueue."""


@dataclass(frozen=True)
class Policy:
    """How a queue shares and preempts; ``reclaim`` and ``within`` are Kueue's preemption policies."""

    weight: Decimal = Decimal(1)
    reclaim: str = "Any"
    within: str = "Never"


DEFAULT_POLICY = Policy()
ROOT_WITHOUT_QUOTA = Quota(0, None, None)
"""The quota of a root: Kueue refuses a limit on borrowing or lending where there is no parent."""


def cohort(
    department: str,
    parent: str | None = None,
    pools: Iterable[PoolShape] = (),
    limits: Mapping[str, Quota] | None = None,
    policy: Policy = DEFAULT_POLICY,
) -> Manifest:
    """Return the Cohort of a department, whose own quota all its teams may borrow.

    `parent` is the name of its parent Cohort; only with one it borrows and lends. A root without quota of its own has
    no groups: its teams bring them.
    """
    own = limits or {}
    has_own = any(quota.nominal for quota in own.values())
    groups = resource_groups(pools, own, ZERO_QUOTA if parent else ROOT_WITHOUT_QUOTA) if parent or has_own else []
    return {
        "apiVersion": API_VERSION,
        "kind": "Cohort",
        "metadata": {"name": names.cohort(department)},
        "spec": {
            **({"parentName": parent} if parent else {}),
            **({"resourceGroups": groups} if groups else {}),
            "fairSharing": {"weight": _quantity(policy.weight)},
        },
    }


def resource_flavor(flavor: FlavorShape) -> Manifest:
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceFlavor",
        "metadata": {"name": names.resource_flavor(flavor.name)},
        "spec": {
            "nodeLabels": dict(sorted(flavor.node_selector.items())),
            "tolerations": [dict(toleration) for toleration in flavor.tolerations],
        },
    }


def cluster_queue(
    team: str, department: str, pools: Iterable[PoolShape], limits: Mapping[str, Quota], policy: Policy = DEFAULT_POLICY
) -> Manifest:
    """Return the ClusterQueue of a team, which admits from the team's own namespaces only.

    `limits` are in pool units, {pool key: quota}; a pool without one has none and borrows none. The order of `pools`
    does not matter. Raises NotRepresentable if Kueue's bounds on groups, resources or flavors are exceeded.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterQueue",
        "metadata": {"name": names.cluster_queue(team)},
        "spec": {
            "cohortName": names.cohort(department),
            "namespaceSelector": {"matchLabels": {names.TEAM_LABEL: team}},
            "queueingStrategy": "BestEffortFIFO",
            "preemption": {"reclaimWithinCohort": policy.reclaim, "withinClusterQueue": policy.within},
            "fairSharing": {"weight": _quantity(policy.weight)},
            "resourceGroups": resource_groups(pools, limits),
        },
    }


def _quantity(weight: Decimal) -> str:
    """Return the weight as the API server writes it, so that applied and observed texts are equal."""
    milli = int(weight * 1000)
    return str(milli // 1000) if milli % 1000 == 0 else f"{milli}m"


def resource_groups(
    pools: Iterable[PoolShape], limits: Mapping[str, Quota], nothing: Quota = ZERO_QUOTA
) -> list[Manifest]:
    """Return groups sorted by their first flavor, flavors and resources by name; `nothing` is the quota without a
    limit, and of what a flavor lacks.
    """
    quotas: dict[str, dict[str, Quota]] = {}
    for pool in sorted(pools, key=lambda pool: pool.key):
        of_flavor = quotas.setdefault(pool.flavor, {})
        for resource, amount in pool.resources.items():
            of_flavor[resource] = limits.get(pool.key, nothing).times(amount)
    groups = [_group(flavors, quotas, nothing) for flavors in _components(quotas)]
    _check(groups)
    return groups


def _components(quotas: Mapping[str, Mapping[str, Quota]]) -> list[list[str]]:
    """Return flavors that share resources, directly or through others: each list sorted, lists by their
    first flavor.
    """
    components: list[tuple[set[str], set[str]]] = []
    for flavor in sorted(quotas):
        flavors, resources = {flavor}, set(quotas[flavor])
        apart = []
        for others, covered in components:
            if covered & resources:
                flavors |= others
                resources |= covered
            else:
                apart.append((others, covered))
        components = [*apart, (flavors, resources)]
    return sorted(sorted(flavors) for flavors, _ in components)


def _group(flavors: Sequence[str], quotas: Mapping[str, Mapping[str, Quota]], nothing: Quota) -> Manifest:
    covered = sorted({resource for flavor in flavors for resource in quotas[flavor]})
    return {
        "coveredResources": covered,
        "flavors": [
            {
                "name": names.resource_flavor(flavor),
                "resources": [_resource(resource, quotas[flavor].get(resource, nothing)) for resource in covered],
            }
            for flavor in flavors
        ],
    }


def _resource(name: str, quota: Quota) -> Manifest:
    bounds = {"borrowingLimit": quota.borrowing, "lendingLimit": quota.lending}
    return {
        "name": name,
        "nominalQuota": str(quota.nominal),
        **{field: str(amount) for field, amount in bounds.items() if amount is not None},
    }


def _check(groups: Sequence[Manifest]) -> None:
    if len(groups) > MAX_GROUPS:
        raise NotRepresentable(f"{len(groups)} groups of flavors; Kueue takes {MAX_GROUPS} per ClusterQueue")
    for group in groups:
        for part, most in (("coveredResources", MAX_RESOURCES), ("flavors", MAX_FLAVORS)):
            if len(group[part]) > most:
                raise NotRepresentable(f"{len(group[part])} {part} in one group; Kueue takes {most}")
