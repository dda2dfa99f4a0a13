"""Examples of Kubernetes', Kueue's and NVIDIA's documentation, and common workloads, run behind all guards.

The manifests of `workloads/` have two additions for the portal: the label of an allocation or of the queue, and the run
time of the simulated container. They are applied with a member's kubeconfig, in a project of level baseline.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.local.runner import Local
from portal.tenants import structure
from portal.tenants.actors import SYSTEM
from portal.tenants.models import PodSecurity, Project, User
from tests.support.cluster.allocations import held
from tests.support.cluster.lent_projects import LentProjects
from tests.support.cluster.stage import Person
from tests.support.cluster.tenants import person_of
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster
FOLDER = Path(__file__).parent / "workloads"
GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "jobs.md"
TRIED = [
    ("vectoradd", "cuda-vectoradd", 1, "Succeeded"),
    ("toleration", "gpu-pod", 1, "Running"),
    ("time-slicing-verification", "time-slicing-verification", 5, "Running"),
    ("notebook", "notebook", 1, "Running"),
    ("inference", "inference", 2, "Running"),
    ("kueue-job", "sample-job", 3, "Succeeded"),
    ("indexed-job", "training", 2, "Succeeded"),
]
"""File, value of the label app, number of pods, and their final phase."""
SLICES = {"whole": ("l40s/whole", 2), "shared": ("t4/shared", 8)}


@pytest.fixture(scope="module")
def baseline(member: User, lent_projects: LentProjects) -> Iterator[Project]:
    with lent_projects.own() as project:
        structure.change_project(SYSTEM, project, {"pod_security": PodSecurity.BASELINE})
        for name, (offering, count) in SLICES.items():
            held(member, project, offering, count, name=name)
        yield project


@pytest.fixture(scope="module")
def person(local: Local, tmp_path_factory: pytest.TempPathFactory, member: User, baseline: Project) -> Person:
    return person_of(local, tmp_path_factory.mktemp("person"), member, baseline.namespace)


def manifests(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")))


def apply(person: Person, objects: list[dict[str, Any]]) -> None:
    """Apply until it succeeds, since the baseline level reaches the namespace a moment after it was set."""
    manifests = yaml.safe_dump_all(objects)
    eventually(lambda: person.do("apply", "-f", "-", stdin=manifests), AssertionError)


def phases(person: Person, app: str) -> list[str]:
    return [pod["status"].get("phase", "") for pod in person.items("pods", f"app={app}")]


@pytest.mark.parametrize(("name", "app", "pods", "phase"), TRIED)
def test_ordinary_workloads_run_as_they_are(person: Person, name: str, app: str, pods: int, phase: str) -> None:
    apply(person, manifests(name))
    eventually(lambda: phases(person, app) == [phase] * pods, within_s=60)


def test_every_workload_of_the_folder_is_tried() -> None:
    assert {name for name, *_ in TRIED} == {file.stem for file in FOLDER.glob("*.yaml")}


def test_the_job_of_the_guide_runs(person: Person) -> None:
    sample = GUIDE.read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0]
    apply(person, [yaml.safe_load(sample)])
    eventually(lambda: phases_of_job(person, "train") == ["Running"] * 2, within_s=60)


def phases_of_job(person: Person, name: str) -> list[str]:
    return [pod["status"].get("phase", "") for pod in person.items("pods", f"job-name={name}")]


def test_a_deployment_is_rolled_out_anew_and_scaled(person: Person) -> None:
    apply(person, manifests("notebook"))
    person.do("set", "env", "deployment/notebook", "GREETING=hello")
    person.do("rollout", "status", "deployment/notebook", "--timeout=60s")
    person.do("scale", "deployment/notebook", "--replicas=0")
    eventually(lambda: not phases(person, "notebook"), within_s=60)
