"""Builds the objects that belong to no project: people's service accounts, the FlowSchema of those of projects, and the
PriorityClasses of hold quotas.
"""

from collections.abc import Iterable

from allocations.cluster import names
from allocations.domain.objects import Manifest

HOLD_PRIORITY = 100
PRECEDENCE = 8900
"""Just before FlowSchema service-accounts of Kubernetes (9000), so that an admin's FlowSchemas are asked first."""
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
    resources = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "clusterScope": True, "namespaces": ["*"]}
    groups = [names.service_accounts(namespace) for namespace in sorted(namespaces)]
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": names.PROJECTS_FLOW, "labels": LABELS},
        "spec": {
            "priorityLevelConfiguration": {"name": names.TENANTS_LEVEL},
            "matchingPrecedence": PRECEDENCE,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [
                {
                    "subjects": [{"kind": "Group", "group": {"name": group}} for group in groups],
                    "resourceRules": [resources],
                    "nonResourceRules": [{"nonResourceURLs": ["*"], "verbs": ["*"]}],
                }
            ],
        },
    }


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


def former_hold_class(name: str) -> Manifest:
    """Return a former class that a flavor's allocations shared, unchanged: its pods keep it until they end."""
    return {**hold_class(name), "value": 0, "preemptionPolicy": "PreemptLowerPriority"}


def labelled(manifest: Manifest) -> Manifest:
    """Return the manifest with the labels by which the watcher selects the portal's objects."""
    metadata = {**manifest["metadata"], "labels": {**manifest["metadata"].get("labels", {}), **LABELS}}
    return {**manifest, "metadata": metadata}
