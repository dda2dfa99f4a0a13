"""Watch events of objects that were written while a test ran."""

import json
from typing import Any

from tests.support.cluster.fixtures import Kubectl


def events_since(kubectl: Kubectl, path: str, resource_version: str, name: str = "") -> list[dict[str, Any]]:
    """Return the events of a collection after a resourceVersion, oldest first, each with ``type`` and ``object``.

    The watch starts at that version, so it returns every write however late it begins. ``name`` selects one object.
    """
    selector = f"&fieldSelector=metadata.name%3D{name}" if name else ""
    query = f"watch=true{selector}&resourceVersion={resource_version}&timeoutSeconds=1"
    return [json.loads(line) for line in kubectl("get", "--raw", f"{path}?{query}").splitlines()]
