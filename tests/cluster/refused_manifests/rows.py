"""Reads manifests.yaml, and changes manifests as its steps say. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.cluster.manifests import fill

FILE = Path(__file__).parent / "manifests.yaml"
Manifest = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """What is told of the objects: of each word at least one is refused or, with ``warns``, accepted with a warning.
    ``so`` says in words what to change, and ``after`` are the objects then.
    """

    before: Sequence[Manifest]
    told: Sequence[str]
    warns: bool
    so: str
    after: Sequence[Manifest]


@dataclass(frozen=True)
class Row:
    title: str
    steps: Sequence[Step]

    @property
    def mended(self) -> Sequence[Manifest]:
        return self.steps[-1].after


def rows(names: Mapping[str, str]) -> list[Row]:
    """Return the rows with each ``${name}`` in them replaced."""
    return [_row(entry) for entry in fill(yaml.safe_load(FILE.read_text(encoding="utf-8")), names)]


def _row(entry: Manifest) -> Row:
    objects, steps = entry["objects"], []
    for step in entry["steps"]:
        told = [step["told"]] if isinstance(step["told"], str) else step["told"]
        after = step.get("becomes") or [changed(each, step["change"].get(each["kind"], {})) for each in objects]
        after = [each for each in after if each["kind"] not in step.get("without", ())]
        steps.append(Step(objects, told, step.get("warns", False), step["so"], after))
        objects = after
    return Row(entry["title"], steps)


def changed(value: Any, patch: Any) -> Any:
    """Return a value with a patch merged into it: null takes a key out; lists of named objects are merged by name."""
    if isinstance(value, dict) and isinstance(patch, dict):
        kept = {key: inner for key, inner in value.items() if patch.get(key, inner) is not None}
        new = {key: inner for key, inner in patch.items() if inner is not None}
        return kept | {key: changed(kept[key], inner) if key in kept else inner for key, inner in new.items()}
    if isinstance(value, list) and isinstance(patch, list) and all("name" in each for each in (*value, *patch)):
        by_name = {each["name"]: each for each in patch}
        return [changed(each, by_name.get(each["name"], {})) for each in value]
    return patch


def pods(manifest: Manifest) -> list[Manifest]:
    """Return what the first pod of a manifest is to the guards, as its controller makes it; nothing of a queued Job,
    whose pods only the Job controller may create.
    """
    kind, metadata = manifest["kind"], manifest["metadata"]
    if kind not in ("Job", "Deployment", "StatefulSet") or "kueue.x-k8s.io/queue-name" in metadata.get("labels", {}):
        return []
    template = manifest["spec"]["template"]
    number = {"StatefulSet": {"apps.kubernetes.io/pod-index": "0"}}.get(kind, {})
    labels = {**template["metadata"].get("labels", {}), **number}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}
    return [{**pod, "metadata": {**template["metadata"], "name": f"{metadata['name']}-0", "labels": labels}}]
