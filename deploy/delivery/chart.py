"""Judges the chart, and packs it: `make chart`.

For each set of values in deploy/chart/ci: `helm lint`, `helm template` twice with the same result, kubeconform with the
schemas of the oldest and the newest Kubernetes, a comparison with deploy/cluster, and kube-score. The schema of Compose
judges deploy/compose.yaml. Then build/chart has the package.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from deploy.delivery import programs, schemas
from deploy.local.errors import LocalError

CHART = Path(__file__).parents[1] / "chart"
NAMESPACE = "--namespace=gpu-portal"
CLUSTER = CHART.with_name("cluster")
FOLDERS = ("crd", "policies", "roles", "flow-control")
"""Of deploy/cluster, which the chart has too."""
KEPT = {"helm.sh/resource-policy": "keep"}
OWN = ("portal", "gpu-portal:portal", "gpu-portal:people")
"""Names of the portal's own rights, which end with the release."""
VERSIONS = ("v1.34.4", "v1.37.2")
WITHOUT_MUTATING = VERSIONS[:1]
COMPOSE = ("github.com/compose-spec/compose-go/v2", "v2.16.2")
OTHER_KINDS = "HTTPRoute,ScrapeConfig,PrometheusRule"
"""Kinds of definitions that are not Kubernetes' own."""
IGNORED = {
    "container-image-pull-policy": "images have a tag of a release, which is not pushed again",
    "deployment-has-host-podantiaffinity": "pods are spread by topologySpreadConstraints",
}

REFUSED = {
    ("--namespace=other",): "Install into namespace gpu-portal, not other",
    ("--kube-version=v1.35.4",): "set cluster.webhook=true",
    ("--kube-version=v1.33.9",): "incompatible with Kubernetes v1.33.9",
    ("--set=web.replica=3",): "additional properties 'replica' not allowed",
    ("--set=clusterName=",): "clusterName",
}
"""What the chart refuses, by options of `helm template`, and words of its refusal."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.delivery.chart")
    parser.add_argument("--source", type=Path, default=CHART, help="the folder that is packed; default: deploy/chart")
    parser.add_argument("--out", type=Path, default=Path("build") / "chart", help="default: build/chart")
    arguments = parser.parse_args()
    try:
        bin_ = programs.folder()
        schema_folders = {version: schemas.folder(version) for version in VERSIONS}
        for values in sorted((CHART / "ci").glob("*.yaml")):
            judge(bin_, values, schema_folders)
        judge_compose()
        for options, words in REFUSED.items():
            refuse(bin_ / "helm", options, words)
        arguments.out.mkdir(parents=True, exist_ok=True)
        _run([bin_ / "helm", "package", arguments.source, f"--destination={arguments.out}"])
    except LocalError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def judge(bin_: Path, values: Path, schema_folders: dict[str, Path]) -> None:
    """Raise LocalError, with what a program says, if one of them finds a fault."""
    helm = bin_ / "helm"
    _run([helm, "lint", CHART, "--strict", NAMESPACE, f"--values={values}"])
    for version, folder in schema_folders.items():
        rendered = render(helm, values, version)
        if rendered != render(helm, values, version):
            raise LocalError(f"{values.name}: rendered twice, the chart differs")
        location = f"-schema-location={folder}/{schemas.LOCATION}"
        said = _run([bin_ / "kubeconform", "-summary", f"-skip={OTHER_KINDS}", location], rendered)
        print(f"{values.stem:16} {version}: {said.strip()}")
        if "cluster: {crd: false" not in values.read_text():
            compare(rendered, has_mutating=version not in WITHOUT_MUTATING)
    ignored = [f"--ignore-test={name}" for name in IGNORED]
    _run(
        [bin_ / "kube-score", "score", "--ignore-container-cpu-limit", *ignored, "--output-format=human", "-"], rendered
    )
    print(f"{values.stem:16} kube-score: no critical finding")


def judge_compose() -> None:
    """Raise LocalError unless deploy/compose.yaml obeys the schema of the Compose specification."""
    module = programs.module_folder(*COMPOSE)
    schema = json.loads((module / "schema" / "compose-spec.json").read_text())
    document = yaml.safe_load((CHART.with_name("compose.yaml")).read_text())
    found = jsonschema.Draft202012Validator(schema).iter_errors(document)
    errors = [f"{error.json_path}: {error.message}" for error in found]
    if errors:
        raise LocalError("\n".join(["deploy/compose.yaml", *errors]))
    print(f"compose.yaml     valid, {len(document['services'])} services")


def render(helm: Path, values: Path, version: str, *options: str) -> str:
    """Return the chart's objects for a version of Kubernetes, as YAML."""
    webhook = ["--set=cluster.webhook=true"] if version in WITHOUT_MUTATING and not options else []
    words = [NAMESPACE, f"--kube-version={version}", f"--values={values}", *webhook, *options]
    return _run([helm, "template", "gpu-portal", CHART, *words])


def refuse(helm: Path, options: Iterable[str], words: str) -> None:
    """Raise LocalError unless the chart refuses the options, saying why."""
    try:
        render(helm, CHART / "ci" / "defaults.yaml", VERSIONS[-1], *options)
    except LocalError as error:
        if words in str(error):
            return
        raise
    raise LocalError(f"the chart takes {' '.join(options)}")


def compare(rendered: str, *, has_mutating: bool) -> None:
    """Raise LocalError unless the chart has what deploy/cluster has, kept at uninstall but for the portal's rights."""
    files = [path for folder in FOLDERS for path in (CLUSTER / folder).glob("*.yaml")]
    applied = {key(each): each for path in files for each in yaml.safe_load_all(path.read_text())}
    wanted = {
        name: each
        for name, each in applied.items()
        if "" not in name
        and name != ("Namespace", "gpu-portal")
        and (has_mutating or not name[0].startswith("Mutating"))
    }
    found = {key(each): each for each in yaml.safe_load_all(rendered) if each and key(each) in applied}
    kept = {name for name, each in found.items() if each["metadata"].pop("annotations", {}) == KEPT}
    if found != wanted:
        raise LocalError(f"the chart differs from deploy/cluster: {_differing(found, wanted)}")
    if lost := {name for name in wanted if name not in kept and name[1] not in OWN}:
        raise LocalError(f"removed when the release is uninstalled: {sorted(lost)}")
    if stays := {name for name in kept if name[1] in OWN}:
        raise LocalError(f"left when the release is uninstalled: {sorted(stays)}")


def key(document: dict[str, Any]) -> tuple[str, str]:
    """Return kind and name; the name is empty for what is no object."""
    return document["kind"], document.get("metadata", {}).get("name", "")


def _differing(one: dict[Any, Any], other: dict[Any, Any]) -> list[Any]:
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def _run(command: Iterable[object], stdin: str = "") -> str:
    words = [str(word) for word in command]
    run = subprocess.run(words, input=stdin, capture_output=True, text=True, check=False)
    if run.returncode:
        raise LocalError(f"{' '.join(words)}\n{run.stdout[-6000:]}{run.stderr[-3000:]}")
    return run.stdout


if __name__ == "__main__":
    sys.exit(main())
