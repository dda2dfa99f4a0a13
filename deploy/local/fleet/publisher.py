"""Keeps the cluster's nodes and ResourceSlices equal to the fleet, in place of kubelet and NVIDIA's driver.

Level-triggered. Each pass lists metadata only and compares resourceVersions with those last found correct, so a pass
over an unchanged cluster is three small requests and no write. An object that is new, changed or missing is read in
full, compared and written. The pass after a failed one does its work.
"""

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import urllib3

from deploy.local.fleet import mig_manager, nodes, slices, spec, state
from deploy.local.fleet.api import Api, ApiError, Object
from deploy.local.fleet.differences import node_patch, node_status_patch, pool_writes
from deploy.local.fleet.mig_manager import NodeCards
from deploy.local.fleet.slices import Taint
from quotas.catalog.nvidia import DRA_DRIVER

log = logging.getLogger("fleet")

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
SLICES_OF_DRIVER = f"{SLICES}?fieldSelector=spec.driver%3D{DRA_DRIVER}"
PASS_EVERY_S = 2.0

# Taints by node, then by device.
Taints = Mapping[str, Mapping[str, Sequence[Taint]]]
Desired = tuple[dict[str, Object], dict[str, dict[str, Object]]]


def desired(fleet: spec.Fleet, taints: Taints, managed_cards: Mapping[str, NodeCards]) -> Desired:
    """Return the desired nodes by name, and the slice specs by pool and slice name.

    `managed_cards` are the cards of the nodes that have a MIG manager.
    """
    manifests: dict[str, Object] = {}
    pools: dict[str, dict[str, Object]] = {}
    for kind in fleet.kinds:
        for name in kind.node_names():
            manifests[name] = nodes.node(fleet, kind, name, managed_cards.get(name))
            if kind.path == "dra":
                pools[name] = slices.pool(fleet, kind, name, taints.get(name, {}))
    return manifests, pools


class Publisher:
    """Stores the resourceVersion at which each object was last found or made correct."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._correct_versions: dict[str, str] = {}
        self._node_uids: dict[str, str] = {}

    def publish(self, desired_objects: Desired, observed_nodes: dict[str, Object]) -> None:
        """Run one pass: nodes first, since they own the slices; then delete the objects that are no longer desired."""
        manifests, pools = desired_objects
        observed_slices = self.list_metadata(SLICES_OF_DRIVER)
        for name, manifest in manifests.items():
            self._attempt(self._publish_node, name, manifest, observed_nodes.get(name))
        for name, specs in pools.items():
            if name in self._node_uids:
                self._attempt(self._publish_pool, name, specs, observed_slices)
        for name in self._obsolete(observed_slices, {name for specs in pools.values() for name in specs}):
            self._attempt(self._delete, SLICES, name)
        for name in self._obsolete(observed_nodes, set(manifests)):
            self._attempt(self._delete, NODES, name)

    def forget(self) -> None:
        """Compare every object again in the next pass, since the desired state has changed."""
        self._correct_versions.clear()

    def list_metadata(self, path: str) -> dict[str, Object]:
        """Return the metadata of all objects at a path, by name."""
        return {item["metadata"]["name"]: item["metadata"] for item in self._api.list_metadata(path)}

    def _publish_node(self, name: str, manifest: Object, listed: Object | None) -> None:
        if listed is None:
            log.info("node %s: create", name)
            self._accept_node(self._api.create(NODES, manifest))
            return
        if self._correct_versions.get(name) == listed["resourceVersion"]:
            return
        observed = self._api.get(f"{NODES}/{name}")
        if patch := node_patch(manifest, observed):
            log.info("node %s: repair %s", name, sorted(patch))
            observed = self._api.merge(f"{NODES}/{name}", patch)
        if patch := node_status_patch(manifest, observed):
            log.info("node %s: repair %s", name, sorted(patch["status"]))
            observed = self._api.merge(f"{NODES}/{name}/status", patch)
        self._accept_node(observed)
        if node_patch(manifest, observed):  # changed by another client between the two writes
            self._correct_versions.pop(name)

    def _accept_node(self, observed: Object) -> None:
        metadata = observed["metadata"]
        self._correct_versions[metadata["name"]] = metadata["resourceVersion"]
        self._node_uids[metadata["name"]] = metadata["uid"]

    def _publish_pool(self, node: str, specs: dict[str, Object], listed: dict[str, Object]) -> None:
        present = {name: listed[name] for name in specs if name in listed}
        if len(present) == len(specs) and all(
            self._correct_versions.get(name) == metadata["resourceVersion"] for name, metadata in present.items()
        ):
            return
        observed = {name: self._api.get(f"{SLICES}/{name}") for name in present}
        writes = pool_writes(specs, observed)
        for name, spec_ in writes.items():
            log.info("slice %s: generation %d", name, spec_["pool"]["generation"])
            self._accept_slice(self._write_slice(node, name, spec_, observed.get(name)))
        for name, slice_ in observed.items():
            if name not in writes:
                self._accept_slice(slice_)

    def _write_slice(self, node: str, name: str, spec_: Object, observed: Object | None) -> Object:
        if observed is not None:
            return self._api.replace(f"{SLICES}/{name}", {**observed, "spec": spec_})
        owner = {
            "apiVersion": "v1",
            "kind": "Node",
            "name": node,
            "uid": self._node_uids[node],
            "controller": True,
        }
        kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
        metadata = {"name": name, "annotations": {nodes.SIMULATED: node}, "ownerReferences": [owner]}
        return self._api.create(SLICES, {**kind, "metadata": metadata, "spec": spec_})

    def _accept_slice(self, observed: Object) -> None:
        self._correct_versions[observed["metadata"]["name"]] = observed["metadata"]["resourceVersion"]

    def _obsolete(self, observed: dict[str, Object], desired_names: set[str]) -> list[str]:
        """Return the names of a publisher's objects that are no longer desired; objects of other owners are left
        alone.
        """
        return [
            name
            for name, metadata in observed.items()
            if name not in desired_names and nodes.SIMULATED in metadata.get("annotations", {})
        ]

    def _delete(self, path: str, name: str) -> None:
        log.info("%s %s: delete", path.rpartition("/")[2], name)
        self._correct_versions.pop(name, None)
        self._node_uids.pop(name, None)
        self._api.delete(f"{path}/{name}")

    def _attempt(self, step: Callable[..., None], *arguments: Any) -> None:
        """Run the step; a refusal (mostly of an object that has changed or gone) must not delay the other objects."""
        try:
            step(*arguments)
        except ApiError as error:
            log.warning("left for the next pass: %s", error)


def run(kubeconfig: Path, fleet_file: Path, stop: threading.Event) -> None:
    """Publish until `stop` is set; apply a change of the fleet file, the state or a MIG layout at once."""
    api = Api(kubeconfig)
    publisher = Publisher(api)
    version: tuple[int, int] | None = None
    published_source: object = None
    desired_objects: Desired = ({}, {})
    while not stop.is_set():
        try:
            version = version or _version(api)
            changes, _ = state.read(api)
            fleet = _fleet(fleet_file, fleet_file.stat().st_mtime_ns).on(version).with_extra(changes.extra)
            observed_nodes = publisher.list_metadata(NODES)
            managed_cards = mig_manager.step_all(fleet, observed_nodes, lambda node: in_use(api, node))
            if (source := (fleet, changes.taints, managed_cards)) != published_source:
                desired_objects = desired(*source)
                publisher.forget()
            publisher.publish(desired_objects, observed_nodes)
            if source != published_source:
                log.info(
                    "published %d nodes, %d of them with ResourceSlices",
                    len(desired_objects[0]),
                    len(desired_objects[1]),
                )
                published_source = source
        except (ApiError, urllib3.exceptions.HTTPError) as error:
            log.warning("this pass failed, the next may not: %s", error)
        stop.wait(PASS_EVERY_S)


def _version(api: Api) -> tuple[int, int]:
    numbers = re.findall(r"\d+", api.get("/version")["gitVersion"])
    return int(numbers[0]), int(numbers[1])


@lru_cache(maxsize=1)
def _fleet(file: Path, _changed_ns: int) -> spec.Fleet:
    return spec.load(file)


def in_use(api: Api, node: str) -> bool:
    """Return whether a pod on the node holds GPUs of the device plugin."""
    pods = api.get(f"{PODS}?fieldSelector=spec.nodeName%3D{node}")["items"]
    return any(mig_manager.uses_gpus(pod) for pod in pods)
