"""The MIG manager of a device-plugin node: divides the node's cards as its label `nvidia.com/mig.config` requests.

The answer is the label `nvidia.com/mig.config.state`. A change takes two steps: `pending`, while the device plugin is
down, then `success` or `failed`. The cards' current layouts are stored with the Node, as real cards store them.
Source: NVIDIA/mig-parted v0.15.0 pkg/mig/{reconfigure,config}, cmd/nvidia-mig-manager.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from deploy.local.fleet import mig_configs
from deploy.local.fleet.mig_configs import Layout
from deploy.local.fleet.spec import Fleet, Kind
from quotas.catalog.layouts import layouts
from quotas.catalog.mig_tables import TABLES, Geometry

Object = dict[str, Any]

CONFIG = "nvidia.com/mig.config"
STATE = "nvidia.com/mig.config.state"
# Where the publisher stores the cards on the Node. No component of NVIDIA reads it.
CARDS_ANNOTATION = "simulated-fleet.gpu-portal.io/mig"


@dataclass(frozen=True)
class NodeCards:
    """The layout of each card of a node, and the manager's answer to the last label value it processed."""

    layouts: tuple[Layout, ...]
    config: str = ""
    state: Literal["", "pending", "success", "failed"] = ""


def initial(kind: Kind) -> NodeCards:
    """Return the layouts in the fleet file."""
    if kind.mig is None:
        return NodeCards((None,) * kind.gpus)
    managed = kind.mig.managed
    return NodeCards((kind.mig.layout,) * kind.gpus, kind.mig.config if managed else "", "success" if managed else "")


def to_annotation(cards: NodeCards) -> str:
    """Return the value of the annotation CARDS_ANNOTATION."""
    return json.dumps({"cards": cards.layouts, "wish": cards.config, "state": cards.state})


def from_annotation(text: str) -> NodeCards:
    document = json.loads(text)
    return NodeCards(tuple(document["cards"]), document["wish"], document["state"])


def step_all(fleet: Fleet, observed: Mapping[str, Object], in_use: Callable[[str], bool]) -> dict[str, NodeCards]:
    """Return the cards of each node after one step of its MIG manager.

    `observed` is metadata by node. `in_use` is called for a node whose cards are about to be divided.
    """
    cards_by_node = {}
    for kind in fleet.kinds:
        if kind.mig is None or not kind.mig.managed:
            continue
        configs, geometry = _configs(fleet, kind), TABLES[kind.card.mig_table]
        for node in kind.node_names():
            metadata = observed.get(node, {})
            annotation = metadata.get("annotations", {}).get(CARDS_ANNOTATION)
            cards = from_annotation(annotation) if annotation else initial(kind)
            config = metadata.get("labels", {}).get(CONFIG, "")
            cards_by_node[node] = step(cards, config, configs, geometry, partial(in_use, node))
    return cards_by_node


def _configs(fleet: Fleet, kind: Kind) -> dict[str, Layout]:
    return mig_configs.layouts_by_name(TABLES[kind.card.mig_table], fleet.mig_configs)


def step(
    cards: NodeCards, config: str, configs: Mapping[str, Layout], geometry: Geometry, in_use: Callable[[], bool]
) -> NodeCards:
    """Return the cards after one step towards `config`, the label's value ("" without one); unchanged if it was
    processed.

    A failed configuration is not tried again until the label changes. After a layout that no card can have, the cards
    look as mig-parted leaves them: MIG is on, the first card is empty after the attempt, and the others were not
    reached.
    """
    if not config or (config == cards.config and cards.state != "pending"):
        return cards
    if config not in configs:
        return replace(cards, config=config, state="failed")
    layout = configs[config]
    if all(each == layout for each in cards.layouts):
        return replace(cards, config=config, state="success")
    if config != cards.config:
        return replace(cards, config=config, state="pending")
    if in_use():
        return replace(cards, state="failed")
    if layout and layout not in layouts(geometry):
        return replace(cards, layouts=({}, *(each or {} for each in cards.layouts[1:])), state="failed")
    return replace(cards, layouts=(layout,) * len(cards.layouts), state="success")


def uses_gpus(pod: Object) -> bool:
    """Return whether a pod holds devices of the device plugin, so that the cards cannot be divided now."""
    if pod["status"].get("phase") in ("Succeeded", "Failed"):
        return False
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
    names = {name for each in containers for name in each.get("resources", {}).get("limits", {})}
    return any(name.startswith("nvidia.com/") for name in names)
