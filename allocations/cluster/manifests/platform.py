"""Builds the objects that belong to no project: people's service accounts, FlowSchemas and priority levels of tenants'
requests, and the PriorityClasses of hold quotas.
"""

from collections.abc import Iterable

from allocations.cluster import names
from allocations.domain.objects import Manifest

HOLD_PRIORITY = 100
PRECEDENCE = 8900
"""Just before FlowSchema service-accounts of Kubernetes (9000), so that an admin's FlowSchemas are asked first."""
TEAM_PRECEDENCE = 990
"""Before FlowSchema gpu-portal-tenants (1000), which has people's other requests."""
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
LABELS = {names.MANAGED: "true", "app.kubernetes.io/managed-by": "gpu-portal"}


def service_account(username: str) -> Manifest:
    """Return a person's ServiceAccount. No pod mounts its token: the portal issues short-lived ones by TokenRequest."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": names.person(username), "namespace": names.PEOPLE_NAMESPACE, "labels": LABELS},
        "automountServiceAccountToken": False,
    }


def projects_flow(namespaces: Iterable[str]) -> Manifest:
    """Return the FlowSchema that puts the service accounts of projects' namespaces into the tenants' priority level.

    Every account may read the API server's documents, and a pod mounts the token of its own, which works anywhere. A
    FlowSchema names each namespace: it has no selector of namespaces.
    """
    resources = {**EVERYTHING, "clusterScope": True, "namespaces": ["*"]}
    rule = {
        "subjects": [_accounts(namespace) for namespace in sorted(namespaces)],
        "resourceRules": [resources],
        "nonResourceRules": [{"nonResourceURLs": ["*"], "verbs": ["*"]}],
    }
    return _flow(names.PROJECTS_FLOW, names.TENANTS_LEVEL, PRECEDENCE, rule)


def team_level(team: str) -> Manifest:
    """Return the priority level of requests in a team's namespaces: one share, never of another level's.

    A request keeps its seat until its answer is read, and a watch until its first objects are. Whoever asks for more
    than the buffers hold and reads nothing keeps a level's seats, so teams share none.
    """
    queuing = {"queues": 16, "handSize": 4, "queueLengthLimit": 50}
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": f"{names.TEAM_LEVEL}{team}", "labels": LABELS},
        "spec": {
            "type": "Limited",
            "limited": {
                "nominalConcurrencyShares": 1,
                "lendablePercent": 0,
                "borrowingLimitPercent": 0,
                "limitResponse": {"type": "Queue", "queuing": queuing},
            },
        },
    }


def team_flow(team: str, namespaces: Iterable[str]) -> Manifest:
    """Return the FlowSchema that puts people's requests in a team's namespaces into the team's priority level."""
    resources = {**EVERYTHING, "namespaces": sorted(namespaces)}
    rule = {"subjects": [_accounts(names.PEOPLE_NAMESPACE)], "resourceRules": [resources]}
    name = f"{names.TEAM_LEVEL}{team}"
    return _flow(name, name, TEAM_PRECEDENCE, rule)


def _flow(name: str, level: str, precedence: int, rule: Manifest) -> Manifest:
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": name, "labels": LABELS},
        "spec": {
            "priorityLevelConfiguration": {"name": level},
            "matchingPrecedence": precedence,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [rule],
        },
    }


def _accounts(namespace: str) -> Manifest:
    return {"kind": "Group", "group": {"name": names.service_accounts(namespace)}}


def hold_class(name: str) -> Manifest:
    """Return the PriorityClass that scopes a hold quota.

    The scheduler tries pods with this class before pods without slices, however many of these are pending. It never
    preempts, since preemption is left to Kueue.
    """
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "labels": LABELS},
        "value": HOLD_PRIORITY,
        "preemptionPolicy": "Never",
        "globalDefault": False,
        "description": "Pods of one allocation: set by the portal's admission policy, scopes its hold quota.",
    }


def labelled(manifest: Manifest) -> Manifest:
    """Return the manifest with the labels by which the watcher selects the portal's objects."""
    metadata = {**manifest["metadata"], "labels": {**manifest["metadata"].get("labels", {}), **LABELS}}
    return {**manifest, "metadata": metadata}
