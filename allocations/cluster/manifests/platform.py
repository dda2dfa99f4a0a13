"""What belongs to no project: people's service accounts and the hold classes of flavors."""

from allocations.cluster import names
from allocations.domain.objects import Manifest

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
    """Value 0: a pod of a hold preempts nobody; the class only scopes the hold quota (preemption is Kueue's)."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "labels": LABELS},
        "value": 0,
        "globalDefault": False,
        "description": "Pods of one allocation: set by the portal's admission policy, scopes its hold quota.",
    }


def labelled(manifest: Manifest) -> Manifest:
    """Any manifest, with the labels by which the watcher finds our objects."""
    metadata = {**manifest["metadata"], "labels": {**manifest["metadata"].get("labels", {}), **LABELS}}
    return {**manifest, "metadata": metadata}
