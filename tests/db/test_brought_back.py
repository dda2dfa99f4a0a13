"""An archived project whose namespace is there again: from a backup of etcd, or since its own row is from a backup."""

from datetime import UTC, datetime

import pytest

from allocations.cluster import kinds, names
from allocations.cluster.kinds import KINDS
from allocations.reconcile import mirror
from allocations.reconcile.mirror_writer import record_observations
from allocations.reconcile.teardown import _brought_back
from tests.support.clusters import LOCAL

pytestmark = pytest.mark.django_db
T0 = datetime(2026, 11, 2, 12, tzinfo=UTC)


@pytest.fixture
def archived(project):
    project.archived_at = T0
    return project


def see(project, kind, name, created="2026-11-01T08:00:00Z", **labels):
    labels = {names.MANAGED: "true", **labels}
    metadata = {"name": name, "uid": f"{kind}-{name}", "resourceVersion": "7", "labels": labels}
    where = {"namespace": project.namespace} if KINDS[kind].namespaced else {"creationTimestamp": created}
    found = kinds.observe(KINDS[kind], {"kind": kind, "metadata": metadata | where}, at=T0, live=False)
    assert found is not None
    record_observations(LOCAL, [found])


def brought_back(project):
    return {(ref.kind, ref.name) for ref in _brought_back(project, mirror.of_project(LOCAL, project.namespace))}


def test_all_that_the_portal_kept_there_is_taken_down_again(archived):
    see(archived, "Namespace", archived.namespace)
    see(archived, "RoleBinding", "gpu-portal-tenant")
    see(archived, "ResourceClaim", "train", **{names.ALLOCATION: "train"})
    assert brought_back(archived) == {("Namespace", archived.namespace), ("RoleBinding", "gpu-portal-tenant")}


def test_a_namespace_that_is_younger_than_the_archiving_is_left_alone(archived):
    see(archived, "Namespace", archived.namespace, created="2026-11-02T12:00:01Z")
    see(archived, "RoleBinding", "gpu-portal-tenant")
    assert brought_back(archived) == set()


def test_where_no_namespace_is_left_there_is_nothing_to_take_down(archived):
    assert brought_back(archived) == set()


def test_a_namespace_that_was_there_before_the_portal_is_left_alone(archived):
    archived.adopted = True
    see(archived, "Namespace", archived.namespace)
    see(archived, "RoleBinding", "gpu-portal-tenant")
    assert brought_back(archived) == set()
