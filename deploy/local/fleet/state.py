"""What commands ask of the running publisher: extra nodes and tainted devices, kept in one JSON file.

The file outlives the publisher, which rereads it when it changes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from deploy.local.fleet.slices import Taint

FILE = "fleet-state.json"


@dataclass(frozen=True)
class State:
    """`extra` nodes by kind; `taints` by node, then by device name."""

    extra: Mapping[str, int] = field(default_factory=dict)
    taints: Mapping[str, Mapping[str, Sequence[Taint]]] = field(default_factory=dict)


def path_beside(kubeconfig: Path) -> Path:
    """Each local cluster has its own state, in the folder of its kubeconfig."""
    return kubeconfig.resolve().with_name(FILE)


def read(path: Path) -> State:
    return State(**json.loads(path.read_text())) if path.exists() else State()


def write(path: Path, state: State) -> None:
    """Replace the file in one step, so that a reader never sees half of it."""
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(asdict(state), indent=1))
    temporary.replace(path)


def with_extra(state: State, extra: Mapping[str, int]) -> State:
    """Set the number of extra nodes of some kinds; 0 removes them."""
    counts = {**state.extra, **extra}
    return State(extra={kind: n for kind, n in counts.items() if n}, taints=state.taints)


def with_taint(state: State, node: str, device: str, taint: Taint) -> State:
    """Add a taint to a device, in place of an earlier one of the same key."""
    devices = state.taints.get(node, {})
    others = [known for known in devices.get(device, ()) if known["key"] != taint["key"]]
    return State(extra=state.extra, taints={**state.taints, node: {**devices, device: [*others, taint]}})


def healed(state: State, node: str, device: str) -> State:
    """Take all taints from a device."""
    devices = {name: taints for name, taints in state.taints.get(node, {}).items() if name != device}
    others = {name: tainted for name, tainted in state.taints.items() if name != node}
    return State(extra=state.extra, taints={**others, node: devices} if devices else others)
