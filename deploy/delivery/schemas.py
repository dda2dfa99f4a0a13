"""Schemas of Kubernetes' kinds for kubeconform, from the OpenAPI document in the module k8s.io/kubernetes.

kubeconform looks for `<kind>-<first part of the group>-<version>.json`; here such a file refers to `definitions.json`,
in which every object is closed: a field that Kubernetes does not know is an error.
"""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from deploy.delivery import programs
from deploy.local.build import cache_root

LOCATION = "{{.ResourceKind}}{{.KindSuffix}}.json"
UNSTRUCTURED = {  # said to be strings, since that is how they are printed
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["string", "integer"]},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["string", "number"]},
}


def folder(version: str) -> Path:
    """Return the folder with the schemas of a version of Kubernetes, such as v1.36.3; write it if it is missing."""
    target = cache_root() / "schemas" / version
    if not target.is_dir():
        source = programs.module_folder("k8s.io/kubernetes", version) / "api" / "openapi-spec" / "swagger.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=target.parent))
        for name, document in files(json.loads(source.read_text())).items():
            (work / name).write_text(json.dumps(document))
        try:
            work.rename(target)
        except OSError:  # another checkout was faster
            shutil.rmtree(work)
    return target


def files(swagger: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the JSON files by their names."""
    definitions = {name: _closed(each) for name, each in swagger["definitions"].items()} | UNSTRUCTURED
    found: dict[str, dict[str, Any]] = {"definitions.json": {"definitions": definitions}}
    for name, definition in definitions.items():
        for kind in definition.get("x-kubernetes-group-version-kind", ()):
            parts = [kind["kind"], *filter(None, [kind["group"].partition(".")[0]]), kind["version"]]
            found[f"{'-'.join(parts).lower()}.json"] = {"$ref": f"definitions.json#/definitions/{name}"}
    return found


def _closed(definition: dict[str, Any]) -> dict[str, Any]:
    closed = {"additionalProperties": False} if "properties" in definition else {}
    return json.loads(json.dumps(closed | definition).replace('"#/definitions/', '"definitions.json#/definitions/'))
