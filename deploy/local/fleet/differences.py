"""Computes the patches that bring observed objects to their desired state; empty if there is no difference. Pure."""

from collections.abc import Mapping
from typing import Any

from deploy.local.fleet import gfd
from deploy.local.fleet.labels import ADMINISTRATORS_LABELS

Object = dict[str, Any]


def node_patch(desired: Object, observed: Object) -> Object:
    """Return a merge patch for a node's labels, annotations and taint; those of other owners stay unchanged.

    Labels that an administrator sets stay unchanged once the node exists. GFD's labels of removed MIG instances are
    removed. A merge patch replaces the whole list of taints, so it has the resourceVersion it was computed from.
    """
    patch: Object = {}
    for part in ("labels", "annotations"):
        have = observed["metadata"].get(part, {})
        wrong: dict[str, str | None] = {
            key: value
            for key, value in desired["metadata"][part].items()
            if have.get(key) != value and key not in ADMINISTRATORS_LABELS
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
    """Return a merge patch for capacity and allocatable; a resource that is no longer published is removed.

    A resource that the device plugin published before stays at 0, as with kubelet until its restart.
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
    """Return the specs to write for one pool, by slice name. `observed` has the existing slices, with their specs.

    The generation follows the rule of Kubernetes' helper for drivers (resourceslice controller of
    k8s.io/dynamic-resource-allocation): one changed slice keeps it, any larger change moves every slice of the pool to
    the next one, so that a scheduler never mixes old and new.
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
