"""What the watcher reads and writes for an event and for a list: only rows concerned, only rows that changed."""

from typing import Any

import pytest

from allocations.cluster import names
from allocations.cluster.kinds import KINDS, Observation
from allocations.models import Allocation, AppliedObject, MirrorObject
from allocations.reconcile.mirror_writer import record_list, record_observations
from portal.core import clock
from portal.tenants.models import Project, Team
from tests.support.capacity_bodies import gpu, h100, node, slices
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.job_observations import pod, workload
from tests.support.observed import DEVICES, T0, at, claim, holder, raw, seen
from tests.support.people import person
from tests.support.rows_read import Reads, counted

pytestmark = pytest.mark.django_db


def local_queue(namespace: str, revision: int, owner: str = "") -> Observation:
    labels = {"gpu-portal.io/managed": "true", "gpu-portal.io/allocation": owner}
    metadata = {"name": "gpu-portal", "namespace": namespace, "uid": namespace, "resourceVersion": str(revision)}
    return seen({"kind": "LocalQueue", "metadata": {**metadata, "labels": labels}, "spec": {}}, 0)


def project_objects(number: int) -> None:
    """Mirror the LocalQueue of a project as applied."""
    queue = {"cluster_id": LOCAL, "kind": "LocalQueue", "namespace": f"p-{number}", "name": "gpu-portal"}
    MirrorObject.objects.create(**queue, uid="u", resource_version=1, seen_at=T0)
    AppliedObject.objects.create(**queue, target=f"local/project:p-{number}", resource_version=1, applied_at=T0)


def test_an_event_of_one_projects_object_reads_no_rows_of_other_projects_objects_of_that_name() -> None:
    def reads(projects: range) -> int:
        for number in projects:
            project_objects(number)
        with counted() as found:
            record_observations(LOCAL, [local_queue("p-0", 10 + len(projects), owner=f"a-{len(projects)}")])
        return found.rows

    few = reads(range(2))
    assert reads(range(2, 40)) == few


@pytest.fixture
def row(team: Team, project: Project) -> Allocation:
    fleet(team)
    return allocate(person(team), project, "h100/whole", name="train")


def statements(*observations: Observation) -> int:
    with counted() as found:
        record_observations(LOCAL, observations)
    return found.statements


def test_an_event_is_read_in_one_statement_and_written_in_another(row: Allocation) -> None:
    """With the targets that it enqueues, and however many events there are at once."""
    lease = raw("Workload", row, names.lease(row.name), 5, spec={}, status={})
    assert statements(seen(lease, 0)) == 2
    assert statements(seen(claim(row, 6, []), 0)) == 2
    assert statements(*(local_queue(f"p-{number}", 10) for number in range(20))) == 2
    assert statements(seen(lease, 1, gone=True)) == 2


def test_an_event_that_begins_or_ends_a_hold_takes_few_statements_more(row: Allocation) -> None:
    """The open intervals are one. What is known of the device, the slot's lock and its last interval, the new interval,
    and the hold's first pod are five more; all that end are one.
    """
    with clock.frozen(at(2)):
        statements(seen(claim(row, 6, DEVICES), 0))
        assert statements(seen(holder(row, 7), 1)) == 2 + 1 + 5
        assert statements(seen(claim(row, 8, []), 2)) == 2 + 1 + 1


LISTS: dict[str, list[dict[str, Any]]] = {
    "Node": [node(), h100()],
    "ResourceSlice": [slices(1, [gpu(n) for n in range(8)])],
    "Pod": [pod()],
    "Workload": [workload()],
}


def listed(kind: str, bodies: list[dict[str, Any]], revision: int) -> Reads:
    with counted() as found:
        record_list(LOCAL, KINDS[kind], [seen(body, 0, live=False) for body in bodies], revision, at(revision))
    return found


@pytest.mark.parametrize("kind", list(LISTS))
def test_a_list_writes_no_row_that_is_as_it_was(kind: str) -> None:
    """Only the position of the watch, and the time for which it may have been away."""
    assert "allocations_mirrorobject" in listed(kind, LISTS[kind], 100).written
    assert set(listed(kind, LISTS[kind], 200).written) <= {"allocations_watchstate", "metering_recorderoutage"}


def test_of_a_list_only_the_row_that_differs_is_written() -> None:
    bodies = [pod(f"train-{n}") for n in range(20)]
    listed("Pod", bodies, 100)
    bodies[3] = pod("train-3", phase="Succeeded", revision=150)
    assert listed("Pod", bodies, 300).written.count("allocations_mirrorobject") == 1
