"""etcd is restored from a backup, and etcd is full until its operator frees space."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import requests
import yaml

from allocations.cluster.backends import registry
from allocations.cluster.client import connect
from allocations.cluster.kinds import KINDS, Kind, observe
from allocations.connect.connection import pod_yaml
from allocations.domain.etcd_usage import STORE_FULL
from allocations.domain.phases import Phase
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, AppliedObject, MirrorObject, WatchEpoch
from allocations.projects import archive as archiving
from allocations.reconcile import etcd_monitor
from deploy.local.home import REPOSITORY
from deploy.local.runner import Local
from portal.core import clock
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from tests.support.cluster.allocations import intervals, wait_for
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.waiting import eventually
from tests.support.clusters import LOCAL
from tests.support.faults import control_plane, etcd
from tests.support.faults.crowd import Crowd
from tests.support.faults.etcd import Etcd
from tests.support.faults.fault import Fault

pytestmark = pytest.mark.faults
SINCE = 20
"""The number of requests after the backup, or while etcd is full."""
RIGHT_WITHIN_S = 90.0
"""The whole control plane restarts, and half as many requests again are made during the fault."""
ROOM_BYTES = 4 * 1024**2
FILLER = "fault-filler"
FILLER_BYTES = 900_000
"""A ConfigMap may have 1 MiB of data."""


@pytest.fixture
def archived_since(kubectl: Kubectl) -> Iterator[Project]:
    """Create a project, wait for its namespace, and yield it, to be archived after the backup."""
    created = tenants.create_project(SYSTEM, Team.objects.get(slug="vision"), f"f-{uuid4().hex[:10]}", "Archived since")
    workqueue.enqueue(targets.project(LOCAL, created.slug))
    eventually(lambda: kubectl("get", "rolebinding", "gpu-portal-tenant", "-n", created.namespace), AssertionError)
    yield created


def test_etcd_is_restored_from_a_backup(
    local: Local, crowd: Crowd, kubectl: Kubectl, under_fault: Fault, archived_since: Project, tmp_path: Path
) -> None:
    """On each backend one allocation is held throughout, one was released since the backup, and others were created
    since.
    """
    epoch = _epoch()
    with under_fault(within_s=RIGHT_WITHIN_S):
        kept, released = zip(*(_two_held(crowd, path) for path in registry.BACKENDS), strict=True)
        pods = {row: _running_pod(kubectl, row) for row in (*kept, *released)}
        charged = _charged(kept, released)
        copied = etcd.copy(local, tmp_path / "etcd")
        archiving.archive(User.objects.get(username="operator"), archived_since)
        crowd.release([row for row in crowd.live() if row not in kept])
        crowd.request_slices(SINCE)
        created = [
            row
            for path in registry.BACKENDS
            for row in eventually(partial(_held_since, crowd, path, kept), within_s=120)
        ]
        for row in released:
            wait_for(row, Phase.ENDED, within_s=120)
        eventually(lambda: _is_taken_down(kubectl, archived_since), within_s=120)
        with control_plane.outage(local, kubectl, crowd.projects[0].namespace, "etcd"):
            away_at = clock.now()
            etcd.restore(local, copied)
    assert _epoch() == epoch + 1
    assert "watch.store_restored" in local.home.log("watcher").read_text()
    for kind in KINDS.values():
        eventually(partial(_is_mirrored, kind))
    assert _charged(kept) <= charged
    for row in kept:
        assert intervals(row)[-1].end is None
        assert _pod(kubectl, row)["metadata"]["uid"] == pods[row]["metadata"]["uid"]
    for row in created:
        first = intervals(row)[0]
        assert first.estimated_end
        assert first.end is not None
        assert first.end <= away_at
    for row in released:
        row.refresh_from_db()
        assert row.phase == Phase.ENDED
        again = [interval for interval in intervals(row) if interval.pk not in charged]
        assert all(interval.end is not None and interval.start >= away_at for interval in again)
        assert not kubectl("get", *_pod_of(row), "--ignore-not-found")
    eventually(lambda: _is_taken_down(kubectl, archived_since), within_s=120)


def _epoch() -> int:
    return WatchEpoch.objects.get().number


def _held(crowd: Crowd, path: str) -> list[Allocation]:
    """Return active allocations that nobody released, oldest first."""
    rows = spec_of_row.rows().filter(project__in=crowd.projects, phase=Phase.ACTIVE, desired=Allocation.Desired.HELD)
    return list(rows.filter(offering__flavor__path=path).order_by("created_at", "id"))


def _two_held(crowd: Crowd, path: str) -> list[Allocation]:
    eventually(lambda: len(_held(crowd, path)) >= 2)
    return _held(crowd, path)[:2]


def _held_since(crowd: Crowd, path: str, before: Iterable[Allocation]) -> list[Allocation]:
    return [row for row in _held(crowd, path) if row not in before]


def _running_pod(kubectl: Kubectl, row: Allocation) -> dict[str, Any]:
    """Create a member's pod on the slices and wait until it runs."""
    apply = partial(kubectl, "apply", "-n", row.project.namespace, "-f", "-", stdin=pod_yaml(row))
    eventually(apply, AssertionError)
    return eventually(lambda: (pod := _pod(kubectl, row))["status"].get("phase") == "Running" and pod)


def _pod(kubectl: Kubectl, row: Allocation) -> dict[str, Any]:
    return dict(json.loads(kubectl("get", *_pod_of(row), "-o", "json")))


def _pod_of(row: Allocation) -> tuple[str, ...]:
    return ("pod", yaml.safe_load(pod_yaml(row))["metadata"]["name"], "-n", row.project.namespace)


def _is_taken_down(kubectl: Kubectl, project: Project) -> bool:
    kept = AppliedObject.objects.filter(target=f"local/project:{project.slug}")
    return not kept.exists() and not kubectl("get", "namespace", project.namespace, "--ignore-not-found")


def _is_mirrored(kind: Kind) -> bool:
    """Return whether the mirror has the objects of the kind that the API server has, as far as the portal reads
    it.
    """
    found, _ = connect(LOCAL).list(kind, partial(observe, kind, at=clock.now(), live=False))
    listed = {(o.ref.namespace, o.ref.name, o.uid, o.allocation, o.deleting, o.digest) for o in found if o}
    rows = MirrorObject.objects.filter(kind=kind.name)
    return listed == set(rows.values_list("namespace", "name", "uid", "allocation", "deleting", "digest"))


def test_etcd_is_full_until_its_operator_makes_room(
    local: Local, crowd: Crowd, kubectl: Kubectl, under_fault: Fault, tmp_path: Path
) -> None:
    """Work that finds no space waits, and holds stay; afterwards all of it is done without another request."""
    with under_fault(within_s=RIGHT_WITHIN_S):
        held, released = zip(*(_two_held(crowd, path) for path in registry.BACKENDS), strict=True)
        charged = _charged(held, released)
        quota_bytes = Etcd(local.home).size_bytes() + ROOM_BYTES
        with etcd.with_quota(local, quota_bytes, tmp_path / "etcd.log"):
            eventually(partial(_finds_no_space, kubectl))
            assert [alarm for _, alarm in Etcd(local.home).alarms()] == [etcd.NOSPACE]
            crowd.release(list(released))
            rows = crowd.request_slices(SINCE)
            eventually(lambda: etcd_monitor.current(LOCAL).refused_writes >= SINCE)
            eventually(partial(_is_told, local, quota_bytes), AssertionError, within_s=120)
            assert _phases(rows) == {Phase.QUEUED}
            assert _phases(held) == {Phase.ACTIVE}
            assert Phase.ENDED not in _phases(released)
            assert all(interval.end is None for row in (*held, *released) for interval in intervals(row)[-1:])
        eventually(partial(_delete_fillers, kubectl), AssertionError)
        Etcd(local.home).make_room()
        assert not Etcd(local.home).alarms()
        local.kill("kwok")  # a pod whose removal was refused may stay in deletion; a kubelet tries again
    assert _phases(released) == {Phase.ENDED}
    assert _charged(held, released) == charged
    eventually(lambda: _health(local)["checks"]["cluster_store"] == "ok")


def _finds_no_space(kubectl: Kubectl) -> bool:
    """Return whether etcd refuses another write for lack of space; after a restart it may refuse for other
    reasons.
    """
    metadata = {"generateName": f"{FILLER}-", "labels": {FILLER: "true"}}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"data": "x" * FILLER_BYTES}}
    try:
        kubectl("create", "-n", "default", "-f", "-", stdin=json.dumps(manifest))
    except AssertionError as refusal:
        return STORE_FULL in str(refusal)
    return False


def _delete_fillers(kubectl: Kubectl) -> bool:
    kubectl("delete", "configmaps", "-n", "default", "-l", FILLER)
    return True


def _is_told(local: Local, quota_bytes: int) -> bool:
    """Return whether health page, metrics and preflight report it; preflight gets the quota and reads the size."""
    health = _health(local)
    assert health["status"] == "degraded"
    assert health["checks"]["cluster_store"].startswith("full, every write in the cluster is refused")
    token = {"Authorization": f"Bearer {local.home.secret('metrics')}"}
    metrics = requests.get(f"{local.home.url}/metrics", headers=token, timeout=30).text
    refused = 'gpu_portal_cluster_store_refused_writes{cluster="local"} '
    assert float(metrics.partition(f"\n{refused}")[2].split()[0]) >= SINCE
    env = {**os.environ, **local.env(), "ETCD_QUOTA_BYTES": str(quota_bytes)}
    command = [sys.executable, "-m", "manage", "preflight", "--output", "json"]
    examined = subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True, check=False)
    (found,) = [check for check in json.loads(examined.stdout)["checks"] if check["check"] == "etcd"]
    assert found["status"] == "problem"
    return True


def _health(local: Local) -> dict[str, Any]:
    return dict(requests.get(f"{local.home.url}/readyz", timeout=30).json())


def _charged(*rows: Iterable[Allocation]) -> set[UUID]:
    """Return the keys of their intervals in the ledger."""
    return {interval.pk for row in chain(*rows) for interval in intervals(row)}


def _phases(rows: Iterable[Allocation]) -> set[str]:
    """Return their current phases."""
    return set(Allocation.objects.filter(pk__in=[row.pk for row in rows]).values_list("phase", flat=True))
