"""Reads and writes Kubernetes events: why a Job's pods were refused, and warnings about pods.

The Job controller writes an event FailedCreate for each pod that the API server refuses because of an admission policy,
a quota or Pod Security.
"""

import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from allocations.cluster import names
from allocations.cluster.client import APPLY, Client
from allocations.cluster.errors import ClusterRefused
from allocations.domain.objects import Ref
from portal.core import clock

TIMEOUT_S = (0.5, 1.5)
"""To connect and to read: short, since a page waits for the answer."""
PAGE = 1_000
MAX_OF_A_POD = 3
MAX_EVENTS = 5_000
"""Of all projects together. The API server lists them by namespace, so a lower number would leave out the last ones."""
GUARD = re.compile(
    r"ValidatingAdmissionPolicy '(?P<guard>[\w.-]+)' with binding '[\w.-]+' denied request: (?P<words>.*)", re.S
)


class PodEvent(NamedTuple):
    """An event about a pod: ``type`` is Normal or Warning, ``at`` when it was last seen."""

    at: datetime | None
    type: str
    reason: str
    message: str


def refusals(client: Client, namespace: str, job: str) -> list[str]:
    """Return why pods of the Job with this uid were refused, each sentence once, newest last.

    Raises ClusterUnavailable after a short timeout, and ClusterRefused.
    """
    query = {"fieldSelector": f"involvedObject.uid={job},reason=FailedCreate", "limit": 50}
    items = client.json("GET", f"/api/v1/namespaces/{namespace}/events", query=query, timeout=TIMEOUT_S).get("items")
    events = sorted(items or [], key=lambda item: int(item["metadata"]["resourceVersion"]))
    return list(dict.fromkeys(sentence(item.get("message", "")) for item in events))


def refusals_of_jobs(client: Client) -> dict[str, list[str]]:
    """Return why pods of Jobs were refused, by the Job's uid, each sentence once, newest last.

    One request for each ``PAGE`` of events, up to ``MAX_EVENTS``. Raises ClusterUnavailable after a short timeout, and
    ClusterRefused.
    """
    found: dict[str, list[str]] = {}
    for item in sorted(_refusals_of_jobs(client), key=lambda item: int(item["metadata"]["resourceVersion"])):
        messages, words = found.setdefault(item["involvedObject"].get("uid", ""), []), sentence(item.get("message", ""))
        if words not in messages:
            messages.append(words)
    return found


def _refusals_of_jobs(client: Client) -> list[dict[str, Any]]:
    query: dict[str, Any] = {"fieldSelector": "involvedObject.kind=Job,reason=FailedCreate", "limit": PAGE}
    items: list[dict[str, Any]] = []
    while len(items) < MAX_EVENTS:
        page = client.json("GET", "/api/v1/events", query=query, timeout=TIMEOUT_S)
        items += page.get("items") or []
        if not (token := page.get("metadata", {}).get("continue")):
            break
        query = {**query, "continue": token}
    return items


def of_pods(client: Client, namespace: str, pods: Collection[str]) -> dict[str, list[PodEvent]]:
    """Return the newest events about these pods by pod, the newest first, at most ``MAX_OF_A_POD`` each; one request.

    Raises ClusterUnavailable after a short timeout, and ClusterRefused.
    """
    query = {"fieldSelector": "involvedObject.kind=Pod", "limit": PAGE}
    items = client.json("GET", f"/api/v1/namespaces/{namespace}/events", query=query, timeout=TIMEOUT_S).get("items")
    found: dict[str, list[PodEvent]] = {}
    for item in sorted(items or [], key=lambda item: -int(item["metadata"]["resourceVersion"])):
        of_pod = found.setdefault(item["involvedObject"].get("name", ""), [])
        if len(of_pod) < MAX_OF_A_POD:
            at = item.get("lastTimestamp") or item.get("eventTime") or item["metadata"].get("creationTimestamp")
            of_pod.append(
                PodEvent(
                    at=datetime.fromisoformat(at) if at else None,
                    type=item.get("type", ""),
                    reason=item.get("reason", ""),
                    message=sentence(item.get("message", "")),
                )
            )
    return {name: of_pod for name, of_pod in found.items() if name in pods}


def tell(client: Client, job: Ref, uid: str, name: str, reason: str, message: str) -> None:
    """Write a Normal event about a Job. The same ``name`` again writes the same event, so it may be repeated.

    Raises ClusterUnavailable, ClusterRefused.
    """
    event = _event({"name": name}, job, "batch/v1", uid, "Normal", reason, message)
    query = {"fieldManager": names.FIELD_MANAGER, "force": "true"}
    path = f"/api/v1/namespaces/{job.namespace}/events/{name}"
    try:
        client.json("PATCH", path, query=query, body=event, content_type=APPLY)
    except ClusterRefused as error:
        if error.status != 404:  # the namespace is being deleted
            raise


def sentence(message: str) -> str:
    """Return an admission policy's own sentence from the API server's message; other messages unchanged."""
    match = GUARD.search(message)
    return f"{match['words'].strip()} (guard {match['guard']})" if match else message


def warn(client: Client, pod: Ref, reason: str, message: str) -> None:
    """Write a Warning event about the pod, if it still exists. Raises ClusterUnavailable, ClusterRefused."""
    raw = client.get(pod)
    if raw is None:
        return
    name = {"generateName": f"{pod.name[:200].rstrip('.-')}."}
    event = _event(name, pod, "v1", raw["metadata"]["uid"], "Warning", reason, message)
    try:
        client.json("POST", f"/api/v1/namespaces/{pod.namespace}/events", body=event)
    except ClusterRefused as error:
        if error.status != 404:  # the namespace is being deleted
            raise


def _event(
    name: Mapping[str, str], about: Ref, api_version: str, uid: str, type_: str, reason: str, message: str
) -> dict[str, Any]:
    """Return an Event about an object, in its namespace. ``name`` is the Event's ``name`` or ``generateName``."""
    at = clock.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {**name, "namespace": about.namespace},
        "involvedObject": {
            "apiVersion": api_version,
            "kind": about.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": uid,
        },
        "type": type_,
        "reason": reason,
        "message": message[:1000],
        "source": {"component": "gpu-portal"},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
