"""A fixture that changes a node's MIG layout by its label, as an administrator does."""

from collections.abc import Callable
from typing import Any

import pytest

from deploy.local.fleet.mig_manager import CARDS_ANNOTATION, CONFIG, STATE, from_annotation
from tests.support.cluster.waiting import eventually
from tests.support.cluster.watch_events import events_since

Cut = Callable[[str, str], list[str]]


@pytest.fixture
def cut(kubectl, read) -> Cut:
    """Request a layout; return the states of the MIG manager until it is done; none if it is the current layout."""

    def cut(node: str, config: str) -> list[str]:
        before = read("node", node)["metadata"]

        def states() -> list[str]:
            metadata = [version["metadata"] for version in versions(kubectl, node, before["resourceVersion"])]
            answers = [
                one for one in metadata if from_annotation(one["annotations"][CARDS_ANNOTATION]).config == config
            ]
            states = [one["labels"][STATE] for one in answers]
            return states if states[-1:] in (["success"], ["failed"]) else []

        if before["labels"][CONFIG] == config:
            return []
        kubectl("label", "node", node, f"{CONFIG}={config}", "--overwrite")
        return list(dict.fromkeys(eventually(states)))

    return cut


def versions(kubectl, node: str, since: str) -> list[dict[str, Any]]:
    """Return the node after each write since a resourceVersion."""
    return [event["object"] for event in events_since(kubectl, "/api/v1/nodes", since, node)]
