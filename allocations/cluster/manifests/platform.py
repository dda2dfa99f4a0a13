"""Builds the objects that belong to no project: people's service accounts and the PriorityClasses of hold quotas."""

from allocations.cluster import names
from allocations.domain.objects import Manifest

HOLD_PRIORITY = 100
LABELS = {names.MANAGED: "true", "app.kubernetes.io/managed-by": "gpu-portal"}


def service_account(username: str) -> Manifest:
    """Return a person's ServiceAccount. No pod mounts its token: the portal issues short-lived ones by TokenRequest."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": names.person(username), "namespace": names.PEOPLE_NAMESPACE, "labels": LABELS},
        "automountServiceAccountToken": False,
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
