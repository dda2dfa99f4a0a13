"""Reads pods."""

from typing import Any

from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.waiting import eventually


def running_pod(admin: ApiClient, namespace: str, name: str, within_s: float = 60.0) -> dict[str, Any]:
    """Return the pod once it runs; raise AssertionError after ``within_s``."""

    def pod_if_running() -> dict[str, Any]:
        manifest: dict[str, Any] = admin.get("pod", name, namespace)
        return manifest if manifest["status"].get("phase") == "Running" else {}

    return eventually(pod_if_running, AssertionError, within_s=within_s)
