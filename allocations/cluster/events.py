"""Events of Kubernetes: why a Job's pods were refused, read on demand; and what the portal has to say of a pod.

The Job controller writes an event FailedCreate for each pod that the API server refuses: by a guard, a quota
or Pod Security.
"""

import re
from datetime import UTC

from allocations.cluster.client import Client
from allocations.cluster.errors import ClusterRefused
from allocations.domain.objects import Ref
from portal.core import clock

PATIENCE_S = (0.5, 1.5)
GUARD = re.compile(
    r"ValidatingAdmissionPolicy '(?P<guard>[\w.-]+)' with binding '[\w.-]+' denied request: (?P<words>.*)", re.S
)


def refusals(client: Client, namespace: str, job: str) -> list[str]:
    """Why pods of the Job with this uid were refused, each sentence once, newest last.

    Raises ClusterUnavailable, soon, and ClusterRefused.
    """
    query = {"fieldSelector": f"involvedObject.uid={job},reason=FailedCreate", "limit": 50}
    items = client.json("GET", f"/api/v1/namespaces/{namespace}/events", query=query, timeout=PATIENCE_S).get("items")
    told = sorted(items or [], key=lambda item: int(item["metadata"]["resourceVersion"]))
    return list(dict.fromkeys(sentence(item.get("message", "")) for item in told))


def sentence(message: str) -> str:
    """A guard's own sentence out of the API server's words around it; other messages as they are."""
    found = GUARD.search(message)
    return f"{found['words'].strip()} (guard {found['guard']})" if found else message


def warn(client: Client, pod: Ref, reason: str, message: str) -> None:
    """Write a Warning event on the pod; one that is gone has none. Raises ClusterUnavailable, ClusterRefused."""
    live = client.get(pod)
    if live is None:
        return
    at = clock.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{pod.name[:200].rstrip('.-')}.", "namespace": pod.namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": live["metadata"]["uid"],
        },
        "type": "Warning",
        "reason": reason,
        "message": message[:1000],
        "source": {"component": "gpu-portal"},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
    try:
        client.json("POST", f"/api/v1/namespaces/{pod.namespace}/events", body=event)
    except ClusterRefused as error:
        if error.status != 404:  # the namespace is going
            raise
