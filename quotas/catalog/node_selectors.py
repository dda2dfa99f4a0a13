"""Node selectors of flavors: the labels by which a flavor's nodes are selected, and selectors that overlap. Pure."""

from collections.abc import Mapping, Sequence

from quotas.catalog.node_labels import PRODUCT_LABEL, REPLICAS_LABEL, SHARING_LABEL
from quotas.catalog.types import Identity

# Labels that may distinguish two flavors of one product: how GPUs are shared, the device plugin's configuration, and
# the GPU operator's switch between the backends.
DISTINGUISHING_LABELS = (
    SHARING_LABEL,
    "nvidia.com/device-plugin.config",
    "nvidia.com/gpu.deploy.device-plugin",
)
# The value of the last of them while the MIG manager works.
PAUSED = "paused-for-mig-change"
# Where GPUs are not shared, the label of replicas is 0 or 1: whether MIG is on, which may change.
WHOLE_STRATEGIES = ("plain", "dynamic-mig", "static-mig", "vgpu")


def build(key: Identity, nodes: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the labels that select a flavor's nodes, given the labels of each: the product's, and those that
    distinguish it from other flavors.

    They do not depend on which other flavors exist: leases and holders carry the selector, so it must not change when a
    second flavor of the product comes or goes.
    """
    selector = {PRODUCT_LABEL: key.product}
    shared = () if key.strategy in WHOLE_STRATEGIES else (REPLICAS_LABEL,)
    for label in (*DISTINGUISHING_LABELS, *shared):
        values = {labels.get(label, "") for labels in nodes} - {PAUSED}
        if len(values) == 1 and "" not in values:
            selector[label] = values.pop()
    return selector


def ambiguous(selectors: Mapping[Identity, dict[str, str]], names: Mapping[Identity, str]) -> dict[Identity, str]:
    """Return the flavors whose selector also matches nodes of an earlier one, each with a sentence that says so."""
    problems: dict[Identity, str] = {}
    ordered = sorted(selectors, key=lambda key: names[key])
    for position, key in enumerate(ordered):
        for earlier in ordered[:position]:
            if earlier not in problems and _overlap(selectors[key], selectors[earlier]):
                problems[key] = (
                    f"no label tells it from flavor {names[earlier]} ({earlier.path}), so not offered; "
                    f"give both pools the label {_distinguishing_label(key, earlier)}"
                )
                break
    return problems


def _distinguishing_label(left: Identity, right: Identity) -> str:
    """Return the label that would distinguish two flavors, with its values."""
    if left.path != right.path:
        return "nvidia.com/gpu.deploy.device-plugin, true or false"
    return "nvidia.com/device-plugin.config, each its own"


def _overlap(left: Mapping[str, str], right: Mapping[str, str]) -> bool:
    """Return whether a node can match both selectors: no label has two values."""
    return all(left[label] == right[label] for label in left.keys() & right.keys())
