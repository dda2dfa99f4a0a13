"""Every write of a collection since a revision, as the API server remembers them."""

import json
from typing import Any

from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.waiting import eventually

WATCH_S = 3
"""The API server sends a bookmark two seconds before a watch ends."""


def events_since(kubectl: Kubectl, path: str, resource_version: str, name: str = "") -> list[dict[str, Any]]:
    """Return the events of a collection after a resourceVersion, oldest first, each with ``type`` and ``object``.

    The watch starts at that version, so it returns every write however late it begins; a busy API server may not have
    sent all of them when it ends, which a bookmark of the present revision shows. ``name`` selects one object.
    """
    present = _revision(json.loads(kubectl("get", "--raw", f"{path}?limit=1")))
    selector = f"&fieldSelector=metadata.name%3D{name}" if name else ""
    query = f"watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_S}&resourceVersion={resource_version}{selector}"

    def until_present() -> list[dict[str, Any]]:
        events = [json.loads(line) for line in kubectl("get", "--raw", f"{path}?{query}").splitlines()]
        is_complete = any(_is_bookmark(one) and _revision(one["object"]) >= present for one in events)
        return events if is_complete else []

    return [one for one in eventually(until_present) if not _is_bookmark(one)]


def _is_bookmark(event: dict[str, Any]) -> bool:
    return bool(event["type"] == "BOOKMARK")


def _revision(found: dict[str, Any]) -> int:
    return int(found["metadata"]["resourceVersion"])
