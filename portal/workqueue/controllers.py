"""The controllers of targets: what a worker does with a target that is due, by the target's kind.

A package registers its own in its `tasks` module, which Celery imports in every worker. A kind is a word of its own in
the whole portal, and its targets are of a cluster or of none (`portal.workqueue.targets`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from portal.core.locks import lock_id
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from portal.workqueue.targets import Parsed


@dataclass(frozen=True)
class Controller:
    """Reconciles the targets of a kind.

    `reconcile` returns when to do so again if nothing changes, or None; if it raises, the work queue tries again. If it
    `locks` the target, by an advisory lock of the target's text, the target's lease takes that lock for it.
    """

    kind: str
    reconcile: Callable[[Parsed], datetime | None]
    locks: bool = True


_controllers: dict[str, Controller] = {}


def register(*controllers: Controller) -> None:
    """Have workers process the targets of these kinds. Raises ValueError for a kind that has another controller."""
    for controller in controllers:
        if _controllers.setdefault(controller.kind, controller) is not controller:
            raise ValueError(f"{controller.kind} has two controllers")


def process(target: str) -> bool:
    """Reconcile a target if it is due; return False if it is not, or if another worker has it."""
    controller = _controllers.get(targets.parse(target).kind)
    return workqueue.process(target, reconcile, lock_id(target) if controller and controller.locks else None)


def reconcile(target: str) -> datetime | None:
    """Call the target's controller. Raises ValueError for a kind without one, and what the controller raises."""
    parsed = targets.parse(target)
    if parsed.kind not in _controllers:
        raise ValueError(f"no controller for {target}")
    return _controllers[parsed.kind].reconcile(parsed)
