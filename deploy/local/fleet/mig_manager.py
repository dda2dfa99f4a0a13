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
# What the publisher remembers on the Node. No component of NVIDIA's reads it.
REMEMBERED = "simulated-fleet.gpu-portal.io/mig"


@dataclass(frozen=True)
class Cards:
    """The layout of each card of a node, and the manager's answer to the last label value it processed."""

    layouts: tuple[Layout, ...]
    wish: str = ""
    state: Literal["", "pending", "success", "failed"] = ""


def initial(kind: Kind) -> Cards:
    """Return the layouts in the fleet file."""
    if kind.mig is None:
        return Cards((None,) * kind.gpus)
    managed = kind.mig.managed
    return Cards((kind.mig.layout,) * kind.gpus, kind.mig.config if managed else "", "success" if managed else "")


def remembered(cards: Cards) -> str:
    """Return the value of the annotation CARDS_ANNOTATION."""
    return json.dumps({"cards": cards.layouts, "wish": cards.wish, "state": cards.state})


def recalled(text: str) -> Cards:
    known = json.loads(text)
    return Cards(tuple(known["cards"]), known["wish"], known["state"])


def turn(fleet: Fleet, seen: Mapping[str, Object], in_use: Callable[[str], bool]) -> dict[str, Cards]:
    """Return the cards of each node after one step of its MIG manager.

    `observed` is metadata by node. `in_use` is called for a node whose cards are about to be divided.
    """
    turned = {}
    for kind in fleet.kinds:
        if kind.mig is None or not kind.mig.managed:
            continue
        configs, geometry = _configs(fleet, kind), TABLES[kind.card.mig_table]
        for node in kind.node_names():
            metadata = seen.get(node, {})
            annotation = metadata.get("annotations", {}).get(REMEMBERED)
            cards = recalled(annotation) if annotation else initial(kind)
            wish = metadata.get("labels", {}).get(CONFIG, "")
            turned[node] = step(cards, wish, configs, geometry, partial(in_use, node))
    return turned


def _configs(fleet: Fleet, kind: Kind) -> dict[str, Layout]:
    return mig_configs.known(TABLES[kind.card.mig_table], fleet.mig_configs)


def step(
    cards: Cards, wish: str, configs: Mapping[str, Layout], geometry: Geometry, in_use: Callable[[], bool]
) -> Cards:
    """Return the cards after one step towards `config`, the label's value ("" without one); unchanged if it was
    processed.

    A failed configuration is not tried again until the label changes. After a layout that no card can have, the cards
    look as mig-parted leaves them: MIG is on, the first card is empty after the attempt, and the others were not
    reached.
    """
    if not wish or (wish == cards.wish and cards.state != "pending"):
        return cards
    if wish not in configs:
        return replace(cards, wish=wish, state="failed")
    layout = configs[wish]
    if all(each == layout for each in cards.layouts):
        return replace(cards, wish=wish, state="success")
    if wish != cards.wish:
        return replace(cards, wish=wish, state="pending")
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
