"""What the watcher reads and writes for an event and for a list: only rows concerned, only rows that changed."""

from typing import Any

import pytest

from allocations.cluster.kinds import KINDS, Observation
from allocations.models import AppliedObject, MirrorObject
from allocations.reconcile.mirror_writer import record_list, record_observations
from tests.support.capacity_bodies import gpu, h100, node, slices
from tests.support.clusters import LOCAL
from tests.support.job_observations import pod, workload
from tests.support.observed import T0, at, seen
from tests.support.rows_read import Reads, counted

pytestmark = pytest.mark.django_db


def local_queue(namespace: str, revision: int, owner: str = "") -> Observation:
    labels = {"gpu-portal.io/managed": "true", "gpu-portal.io/allocation": owner}
    metadata = {"name": "gpu-portal", "namespace": namespace, "uid": namespace, "resourceVersion": str(revision)}
    return seen({"kind": "LocalQueue", "metadata": {**metadata, "labels": labels}, "spec": {}}, 0)


def project_objects(number: int) -> None:
    """Mirror the LocalQueue of a project as applied."""
    names = {"cluster_id": LOCAL, "kind": "LocalQueue", "namespace": f"p-{number}", "name": "gpu-portal"}
    MirrorObject.objects.create(**names, uid="u", resource_version=1, seen_at=T0)
    AppliedObject.objects.create(**names, target=f"local/project:p-{number}", resource_version=1, applied_at=T0)


def test_an_event_of_one_projects_object_reads_no_rows_of_other_projects_objects_of_that_name() -> None:
    def reads(projects: range) -> int:
        for number in projects:
            project_objects(number)
        with counted() as found:
            record_observations(LOCAL, [local_queue("p-0", 10 + len(projects), owner=f"a-{len(projects)}")])
        return found.rows

    few = reads(range(2))
    assert reads(range(2, 40)) == few


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
