"""Pods that use an allocation, as its page shows them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from allocations.cluster.events import PodEvent
from allocations.requests.pod_use import UsingPod
from frontend.presenters.phases import PhaseBadge

STATES = {
    "waiting": PhaseBadge("Waiting for a node", "hourglass", "wait"),
    "starting": PhaseBadge("Starting", "arrow-up", "move"),
    "running": PhaseBadge("Running", "check", "good"),
    "ending": PhaseBadge("Ending", "arrow-down", "move"),
    "completed": PhaseBadge("Completed", "square", "quiet"),
    "failed": PhaseBadge("Failed", "cross", "bad"),
}


@dataclass(frozen=True)
class PodLine:
    """A pod with its newest events."""

    name: str
    badge: PhaseBadge
    node: str
    problem: str
    since: datetime | None
    events: Sequence[PodEvent]


def count(pods: Iterable[UsingPod]) -> str:
    """Return how many pods are in which state: ``2 running, 1 waiting``; ``none``."""
    found = Counter(pod.state for pod in pods)
    return ", ".join(f"{found[state]} {state}" for state in STATES if found[state]) or "none"


def pod_lines(pods: Iterable[UsingPod], events: Mapping[str, Sequence[PodEvent]]) -> list[PodLine]:
    return [
        PodLine(pod.name, STATES[pod.state], pod.node, pod.problem, pod.since, events.get(pod.name, ())) for pod in pods
    ]
