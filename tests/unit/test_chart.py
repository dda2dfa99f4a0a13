"""The chart has deploy/cluster and no copy of it, and its schema says of every value what it means."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from deploy.delivery import schemas
from deploy.delivery.chart import FOLDERS
from docs.generate import chart as page

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "chart"
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
REQUIRED = {"url": "https://gpu.example.com", "clusterName": "prod-1"}


def test_the_chart_reads_the_folders_that_kubectl_applies() -> None:
    assert (CHART / "cluster").resolve() == DEPLOY / "cluster"
    assert (CHART / "monitoring").resolve() == DEPLOY / "monitoring"


@pytest.mark.parametrize("folder", FOLDERS)
def test_kubectl_applies_every_file_of_a_folder_as_the_chart_does(folder: str) -> None:
    files = {path.name for path in (DEPLOY / "cluster" / folder).glob("*.yaml")} - {"kustomization.yaml"}
    listed = yaml.safe_load((DEPLOY / "cluster" / folder / "kustomization.yaml").read_text(encoding="utf-8"))
    assert set(listed["resources"]) == files
    assert re.search(rf'"{folder}" \.Values\.cluster\.', (CHART / "templates" / "cluster.yaml").read_text())


@pytest.mark.parametrize("folder", FOLDERS)
def test_objects_of_the_cluster_have_no_annotations_that_the_chart_would_lose(folder: str) -> None:
    for path in (DEPLOY / "cluster" / folder).glob("*.yaml"):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            assert "annotations" not in document.get("metadata", {}), path


def described(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and the sentence of each value that the schema has."""
    for name, each in schema.get("properties", {}).items():
        yield f"{path}{name}", each.get("description", "")
        resolved = page.resolved(each)
        yield from described(resolved, f"{path}{name}.")


def given(values: dict[str, Any], schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the path of each value with a default, down to where the schema names no further values."""
    for name, value in values.items():
        yield f"{path}{name}"
        inner = page.resolved(schema["properties"][name])
        if isinstance(value, dict) and inner.get("properties"):
            yield from given(value, inner, f"{path}{name}.")


def test_every_value_has_a_default_and_a_sentence() -> None:
    sentences = dict(described(SCHEMA))
    assert [path for path, sentence in sentences.items() if not sentence.endswith(".")] == []
    assert set(given(VALUES, SCHEMA)) == set(sentences) - {"global"}


@pytest.mark.parametrize("file", sorted((CHART / "ci").glob("*.yaml")), ids=lambda file: file.stem)
def test_sets_of_values_obey_the_schema(file: Path) -> None:
    jsonschema.validate(VALUES | yaml.safe_load(file.read_text(encoding="utf-8")), SCHEMA)


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "gpu.example.com"},
        {"url": "https://gpu.example.com/portal"},
        {"clusterName": ""},
        {"web": {"replica": 3}},
        {"migrations": {"mode": "hooks"}},
        {"image": {"digest": "1.2.3", "repository": "x"}},
        {"settings": {"SECRET_KEYS": ["a"]}},
    ],
    ids=str,
)
def test_a_value_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(VALUES | REQUIRED | wrong, SCHEMA)


def test_versions_are_one() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    project = re.search(r'^version = "(.+)"$', (DEPLOY.parent / "pyproject.toml").read_text(), re.MULTILINE)
    assert project
    assert chart["appVersion"] == project[1]


def test_schemas_for_kubeconform_are_closed_and_named_as_it_looks_for_them() -> None:
    gvk = [{"group": "networking.k8s.io", "kind": "Ingress", "version": "v1"}]
    spec = {"$ref": "#/definitions/Spec"}
    ingress = {"properties": {"spec": spec}, "x-kubernetes-group-version-kind": gvk}
    made = schemas.files({"definitions": {"Ingress": ingress, "Spec": {"type": "object"}}})
    assert made["ingress-networking-v1.json"] == {"$ref": "definitions.json#/definitions/Ingress"}
    definitions = made["definitions.json"]["definitions"]
    assert definitions["Ingress"]["additionalProperties"] is False
    assert definitions["Ingress"]["properties"]["spec"] == {"$ref": "definitions.json#/definitions/Spec"}
    assert "additionalProperties" not in definitions["Spec"]
