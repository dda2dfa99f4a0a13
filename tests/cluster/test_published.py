"""NVIDIA's DRA demo specs and Kueue's job examples, applied as a member: refused as they are, and run when adapted."""

from collections.abc import Iterator
from typing import Any

import pytest

from allocations.domain.phases import Phase
from allocations.models import Allocation
from deploy.local.runner import Local
from portal.tenants.models import Project, User
from tests.cluster.published.__main__ import examples, holds
from tests.support.cluster.allocations import wait_for
from tests.support.cluster.lent_projects import LentProjects
from tests.support.cluster.manifests import build, merge
from tests.support.cluster.stage import Person
from tests.support.cluster.tenants import person_of
from tests.support.cluster.waiting import eventually
from tests.support.people import client

pytestmark = pytest.mark.cluster
EXAMPLES = examples()


@pytest.fixture(scope="module")
def place(member: User, lent_projects: LentProjects) -> Iterator[Project]:
    with lent_projects.lent() as project:
        for body in holds():
            answer = client(member).post("/api/v1/allocations", {**body, "project": project.slug}, format="json")
            assert answer.status_code == 201, answer.json()
            wait_for(Allocation.objects.get(pk=answer.json()["id"]), Phase.ACTIVE)
        yield project


@pytest.fixture(scope="module")
def person(local: Local, tmp_path_factory: pytest.TempPathFactory, member: User, place: Project) -> Person:
    return person_of(local, tmp_path_factory.mktemp("person"), member, place.namespace)


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [f"{row['from']}: {row['example']}" for row in rows]


@pytest.mark.parametrize("row", EXAMPLES, ids=ids(EXAMPLES))
def test_as_it_is_each_object_is_refused_or_warned_of_in_words(row: dict[str, Any], person: Person) -> None:
    for entry in row["as_is"]:
        is_refused, said = person.tried(build(entry, "example"))
        assert entry.get("refused", entry.get("warned")).replace('"', "") in said
        assert is_refused == ("refused" in entry), said


ADAPTED = [row for row in EXAMPLES if "adapted" in row]


@pytest.mark.parametrize("row", ADAPTED, ids=ids(ADAPTED))
def test_adapted_it_runs(row: dict[str, Any], person: Person) -> None:
    name = f"run-{ADAPTED.index(row)}"
    entry = dict(row["adapted"])
    if "pod" in entry:
        entry["pod"] = merge({"labels": {"app": name}}, entry["pod"])
    body = build(entry, name)
    beside = [build(other, name) for other in row.get("beside", [])]
    for manifest in (*beside, body):
        create(person, manifest)
    selector = f"job-name={name}" if "job" in entry else f"app={name}"

    def running() -> list[dict[str, Any]]:
        pods = person.items("pods", selector)
        phases = [pod["status"].get("phase") for pod in pods]
        expected = row.get("pods") or admitted(person, name, row["fewer_than"])
        return pods if phases == ["Running"] * expected else []

    pods = eventually(running, within_s=90)
    if "slices" in row:
        assert len(devices(person, pods)) == row["slices"]
    for manifest in (body, *beside):
        person.delete(manifest["kind"], manifest["metadata"]["name"])


def create(person: Person, manifest: dict[str, Any]) -> None:
    """Create it once the policies know what is held."""
    eventually(lambda: person.created(manifest), AssertionError)


def admitted(person: Person, job: str, requested: int) -> int:
    """Return how many pods the Job may run at once by partial admission; -1 before Kueue has decided."""
    spec = person.get("job", job)["spec"]
    return int(spec["parallelism"]) if not spec["suspend"] and spec["parallelism"] < requested else -1


def devices(person: Person, pods: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Return the devices that the containers of these pods have by claim, each with the pool that it is in."""
    found = set()
    for pod in pods:
        claim_of = {claim["name"]: claim["resourceClaimName"] for claim in pod["spec"]["resourceClaims"]}
        for container in pod["spec"]["containers"]:
            for given in container["resources"].get("claims", []):
                claim = person.get("resourceclaim", claim_of[given["name"]])
                for result in claim["status"]["allocation"]["devices"]["results"]:
                    if given.get("request", result["request"]) == result["request"]:
                        found.add((result["pool"], result["device"]))
    return found
