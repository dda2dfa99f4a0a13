"""What must be written so that an observed object says what it should. Pure, and empty when nothing must."""

from collections.abc import Mapping
from typing import Any

from deploy.local.fleet import gfd
from deploy.local.fleet.labels import ADMINISTRATORS

Object = dict[str, Any]


def node_patch(desired: Object, observed: Object) -> Object:
    """Merge patch for a node's labels, annotations and taint; others' are left alone.

    So are the labels that are the administrator's once the node is there. GFD's labels of MIG instances that are gone
    go too. The taints are one list to a merge patch, so it carries the resourceVersion it was computed from.
    """
    patch: Object = {}
    for part in ("labels", "annotations"):
        have = observed["metadata"].get(part, {})
        wrong: dict[str, str | None] = {
            key: value
            for key, value in desired["metadata"][part].items()
            if have.get(key) != value and key not in ADMINISTRATORS
        }
        if part == "labels":
            wrong |= {key: None for key in have if gfd.is_of_an_instance(key) and key not in desired["metadata"][part]}
        if wrong:
            patch.setdefault("metadata", {})[part] = wrong
    taints = observed["spec"].get("taints", [])
    missing = [taint for taint in desired["spec"]["taints"] if taint not in taints]
    if missing:
        patch["spec"] = {"taints": [*taints, *missing]}
    if patch:
        patch.setdefault("metadata", {})["resourceVersion"] = observed["metadata"]["resourceVersion"]
    return patch


def node_status_patch(desired: Object, observed: Object) -> Object:
    """Merge patch for capacity and allocatable together; a resource nobody advertises any more is removed.

    One that the device plugin advertised before stays at 0, as it does with kubelet until that is restarted.
    """
    patch = {}
    lingering = {name: "0" for name in observed["status"].get("capacity", {}) if name.startswith("nvidia.com/")}
    for part in ("capacity", "allocatable"):
        wrong = _changed(lingering | desired["status"][part], observed["status"].get(part, {}))
        if wrong:
            patch[part] = wrong
    return {"status": patch} if patch else {}


def _changed(desired: Mapping[str, str], observed: Mapping[str, str]) -> dict[str, str | None]:
    wrong: dict[str, str | None] = {k: v for k, v in desired.items() if observed.get(k) != v}
    return wrong | {key: None for key in observed if key not in desired}


def pool_writes(desired: Mapping[str, Object], observed: Mapping[str, Object]) -> dict[str, Object]:
    """Slice name → spec to write, for one pool. `observed` holds the slices that exist, spec included.

    The generation follows the rule of Kubernetes' own helper for drivers (resourceslice controller of
    k8s.io/dynamic-resource-allocation): one changed slice keeps it, anything more moves every slice of the
    pool to the next one, so that a scheduler never mixes old and new.
    """
    generation = max((slice_["spec"]["pool"]["generation"] for slice_ in observed.values()), default=0)
    current = {name: _at_generation(spec, generation) for name, spec in desired.items()}
    wrong = {name for name, spec in current.items() if name not in observed or observed[name]["spec"] != spec}
    if not wrong:
        return {}
    if len(wrong) == 1 and wrong <= observed.keys():
        return {name: current[name] for name in wrong}
    return {name: _at_generation(spec, generation + 1) for name, spec in desired.items()}


def _at_generation(spec: Object, generation: int) -> Object:
    return {**spec, "pool": {**spec["pool"], "generation": generation}}
