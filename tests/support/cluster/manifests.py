"""Builds Kubernetes objects from entries of the tables in tests/cluster/attacks.

An entry is merged over a harmless pod that satisfies Pod Security `restricted`: mappings are merged, other values
replaced.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "cluster" / "attacks"
QUEUE = "kueue.x-k8s.io/queue-name"
PAUSE = "registry.k8s.io/pause:3.10"
L40S = {"nvidia.com/gpu.product": "NVIDIA-L40S"}
SAFE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
SAFE_POD = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}

Entry = dict[str, Any]


def table(name: str) -> list[Entry]:
    return list(yaml.safe_load((FOLDER / f"{name}.yaml").read_text()))


def project(kinds: tuple[str, ...] = (), **names: str) -> Iterator[Entry]:
    """Yield the objects of project.yaml in order; only those of ``kinds`` if given."""
    text = Template((FOLDER / "project.yaml").read_text()).substitute(names)
    for manifest in yaml.safe_load_all(text):
        if not kinds or manifest["kind"] in kinds:
            yield manifest


def fill(value: Any, names: Mapping[str, str]) -> Any:
    """Return ``value`` with each ``${name}`` in its texts replaced."""
    if isinstance(value, str):
        return Template(value).safe_substitute(names)
    if isinstance(value, dict):
        return {key: fill(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [fill(inner, names) for inner in value]
    return value


def build(entry: Entry, name: str) -> Entry:
    """Return the object of an entry that has ``send``, ``job``, ``workload`` or (else) ``pod``."""
    if "send" in entry:
        return dict(entry["send"])
    if "job" in entry:
        return _job(entry["job"], name)
    if "workload" in entry:
        return _workload(entry["workload"], entry.get("replicas", 1), entry.get("pod", {}), name)
    return {"apiVersion": "v1", "kind": "Pod", **_pod(entry.get("pod", {}), name)}


def _pod(patch: Entry, name: str) -> Entry:
    """Return metadata and spec of a pod, or of a template if ``name`` is empty."""
    main = merge({"name": "main", "image": "busybox", "securityContext": SAFE}, patch.get("container", {}))
    containers = [main]
    for other in ("second", "third", "fourth"):
        if other in patch:
            containers.append(merge({"name": other, "image": "busybox", "securityContext": SAFE}, patch[other]))
    spec = {"securityContext": SAFE_POD, "terminationGracePeriodSeconds": 1, "containers": containers}
    return {"metadata": _metadata(patch, name), "spec": merge(spec, patch.get("spec", {}))}


def _metadata(patch: Entry, name: str) -> Entry:
    metadata: Entry = {key: patch[key] for key in ("labels", "annotations", "finalizers") if key in patch}
    if name:
        metadata["name"] = name
    if "owner" in patch:
        metadata["ownerReferences"] = [patch["owner"]]
    return metadata


def _job(patch: Entry, name: str) -> Entry:
    template = merge({"spec": {"restartPolicy": "Never"}}, patch.get("template", {}))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(patch, name),
        "spec": merge({"template": _pod(template, "")}, patch.get("spec", {})),
    }


def _workload(kind: str, replicas: int, patch: Entry, name: str) -> Entry:
    chosen = {"app": name}
    template = _pod({**patch, "labels": {**patch.get("labels", {}), **chosen}}, "")
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": chosen}, "template": template},
    }


def merge(base: Entry, patch: Entry) -> Entry:
    """Return ``base`` with ``patch`` merged into it: mappings are merged, other values replaced."""
    merged = dict(base)
    for key, value in patch.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        merged[key] = merge(base[key], value) if both else value
    return merged
