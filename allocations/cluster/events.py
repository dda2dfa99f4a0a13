"""Reads and writes Kubernetes events: why a Job's pods were refused, and warnings about pods.

The Job controller writes an event FailedCreate for each pod that the API server refuses because of an admission policy,
a quota or Pod Security.
"""

import re
from datetime import UTC

from allocations.cluster.client import Client
from allocations.cluster.errors import ClusterRefused
from allocations.domain.objects import Ref
from portal.core import clock

TIMEOUT_S = (0.5, 1.5)
"""To connect and to read: short, since a page waits for the answer."""
GUARD = re.compile(
    r"ValidatingAdmissionPolicy '(?P<guard>[\w.-]+)' with binding '[\w.-]+' denied request: (?P<words>.*)", re.S
)


def refusals(client: Client, namespace: str, job: str) -> list[str]:
    """Return why pods of the Job with this uid were refused, each sentence once, newest last.

    Raises ClusterUnavailable after a short timeout, and ClusterRefused.
    """
    query = {"fieldSelector": f"involvedObject.uid={job},reason=FailedCreate", "limit": 50}
    items = client.json("GET", f"/api/v1/namespaces/{namespace}/events", query=query, timeout=TIMEOUT_S).get("items")
    events = sorted(items or [], key=lambda item: int(item["metadata"]["resourceVersion"]))
    return list(dict.fromkeys(sentence(item.get("message", "")) for item in events))


def sentence(message: str) -> str:
    """Return an admission policy's own sentence from the API server's message; other messages unchanged."""
    match = GUARD.search(message)
    return f"{match['words'].strip()} (guard {match['guard']})" if match else message


def warn(client: Client, pod: Ref, reason: str, message: str) -> None:
    """Write a Warning event about the pod, if it still exists. Raises ClusterUnavailable, ClusterRefused."""
    raw = client.get(pod)
    if raw is None:
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
            "uid": raw["metadata"]["uid"],
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
        if error.status != 404:  # the namespace is being deleted
            raise
