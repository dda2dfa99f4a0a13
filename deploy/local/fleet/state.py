"""Changes of the fleet requested by commands: extra nodes and tainted devices.

Stored in a ConfigMap: it outlives the publisher, and any kubeconfig with the permission can change it. The publisher
reads it in each pass; commands change it by compare-and-swap.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from deploy.local.fleet.api import Api, Object
from deploy.local.fleet.slices import Taint

CONFIGMAPS = "/api/v1/namespaces/kube-system/configmaps"
NAME = "simulated-fleet"


@dataclass(frozen=True)
class State:
    """Requested changes: `extra` nodes by kind; `taints` by node, then by device name."""

    extra: Mapping[str, int] = field(default_factory=dict)
    taints: Mapping[str, Mapping[str, Sequence[Taint]]] = field(default_factory=dict)


def to_data(state: State) -> dict[str, str]:
    return {"state.json": json.dumps(asdict(state))}


def from_data(data: Mapping[str, str]) -> State:
    return State(**json.loads(data.get("state.json", "{}")))


def read(api: Api) -> tuple[State, Object | None]:
    """Return the state, and the ConfigMap that has it, or None if it does not exist yet."""
    configmaps = api.get(f"{CONFIGMAPS}?fieldSelector=metadata.name%3D{NAME}")["items"]
    return (from_data(configmaps[0].get("data", {})), configmaps[0]) if configmaps else (State(), None)


def change(api: Api, step: Callable[[State], State]) -> None:
    """Replace the state by `step(state)`. Raises ApiError 409 if another command changed it meanwhile."""
    state, configmap = read(api)
    data = to_data(step(state))
    if configmap is None:
        api.create(CONFIGMAPS, {"metadata": {"name": NAME}, "data": data})
    else:
        api.replace(f"{CONFIGMAPS}/{NAME}", {**configmap, "data": data})


def with_extra(state: State, extra: Mapping[str, int]) -> State:
    """Return the state with these numbers of extra nodes; 0 removes them."""
    counts = {**state.extra, **extra}
    return State(extra={kind: n for kind, n in counts.items() if n}, taints=state.taints)


def with_taint(state: State, node: str, device: str, taint: Taint) -> State:
    """Return the state with a taint added to a device, replacing one with the same key."""
    devices = state.taints.get(node, {})
    others = [known for known in devices.get(device, ()) if known["key"] != taint["key"]]
    return State(extra=state.extra, taints={**state.taints, node: {**devices, device: [*others, taint]}})


def healed(state: State, node: str, device: str) -> State:
    """Return the state without any taint on a device."""
    devices = {name: taints for name, taints in state.taints.get(node, {}).items() if name != device}
    others = {name: tainted for name, tainted in state.taints.items() if name != node}
    return State(extra=state.extra, taints={**others, node: devices} if devices else others)
