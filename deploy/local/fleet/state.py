"""What commands ask of the publisher: extra nodes and tainted devices.

Kept in the cluster, as a ConfigMap: it outlives the publisher, and any kubeconfig with the right reaches it.
The publisher lists it in each pass; commands change it by compare-and-swap.
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
    """`extra` nodes by kind; `taints` by node, then by device name."""

    extra: Mapping[str, int] = field(default_factory=dict)
    taints: Mapping[str, Mapping[str, Sequence[Taint]]] = field(default_factory=dict)


def to_data(state: State) -> dict[str, str]:
    return {"state.json": json.dumps(asdict(state))}


def from_data(data: Mapping[str, str]) -> State:
    return State(**json.loads(data.get("state.json", "{}")))


def read(api: Api) -> tuple[State, Object | None]:
    """The state, and the ConfigMap it was read from, if there is one yet."""
    found = api.get(f"{CONFIGMAPS}?fieldSelector=metadata.name%3D{NAME}")["items"]
    return (from_data(found[0].get("data", {})), found[0]) if found else (State(), None)


def change(api: Api, step: Callable[[State], State]) -> None:
    """Replace the state by `step` of it. ApiError 409 if another command did so meanwhile."""
    state, configmap = read(api)
    data = to_data(step(state))
    if configmap is None:
        api.create(CONFIGMAPS, {"metadata": {"name": NAME}, "data": data})
    else:
        api.replace(f"{CONFIGMAPS}/{NAME}", {**configmap, "data": data})


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
