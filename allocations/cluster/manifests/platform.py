"""What belongs to no project: people's service accounts and the classes of hold quotas."""

from allocations.cluster import names
from allocations.domain.objects import Manifest

HOLD_PRIORITY = 100
LABELS = {names.MANAGED: "true", "app.kubernetes.io/managed-by": "gpu-portal"}


def service_account(username: str) -> Manifest:
    """A person on the cluster. No token is mounted anywhere: the portal mints short ones by TokenRequest."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": names.person(username), "namespace": names.PEOPLE_NAMESPACE, "labels": LABELS},
        "automountServiceAccountToken": False,
    }


def hold_class(name: str) -> Manifest:
    """It scopes the hold quota, and has the scheduler look at pods with slices before those without, however many of
    these wait. It preempts nobody (preemption is Kueue's)."""
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
    """A class that a flavor's allocations shared, as it was made: its pods keep it until they end."""
    return {**hold_class(name), "value": 0, "preemptionPolicy": "PreemptLowerPriority"}


def labelled(manifest: Manifest) -> Manifest:
    """Any manifest, with the labels by which the watcher finds our objects."""
    metadata = {**manifest["metadata"], "labels": {**manifest["metadata"].get("labels", {}), **LABELS}}
    return {**manifest, "metadata": metadata}
