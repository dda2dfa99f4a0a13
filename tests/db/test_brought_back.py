"""State that a backup of etcd restored: an archived project's namespace, and access of people who have left."""

from datetime import UTC, datetime

import pytest

from allocations.cluster import kinds, names
from allocations.cluster.kinds import KINDS
from allocations.cluster.manifests import platform
from allocations.cluster.manifests.project import role_bindings
from allocations.domain.actions import Apply, Delete, DesiredState, digest
from allocations.domain.objects import Ref
from allocations.models import AppliedObject
from allocations.reconcile import mirror
from allocations.reconcile.engine.applied import applied_objects
from allocations.reconcile.engine.plan import plan, stale_refs
from allocations.reconcile.mirror_writer import record_list, record_observations, record_sync, reset_revisions
from allocations.reconcile.project import project_facts
from allocations.reconcile.teardown import _restored_objects
from portal.workqueue.targets import Target
from tests.support.clusters import LOCAL
from tests.support.people import person

pytestmark = pytest.mark.django_db
T0 = datetime(2026, 11, 2, 12, tzinfo=UTC)


@pytest.fixture
def archived(project):
    project.archived_at = T0
    return project


def see(project, kind, name, created="2026-11-01T08:00:00Z", **labels):
    labels = {names.MANAGED: "true", **labels}
    metadata = {"name": name, "uid": f"{kind}-{name}", "resourceVersion": "7", "labels": labels}
    where = {"namespace": project.namespace} if KINDS[kind].namespaced else {}
    raw = {"kind": kind, "metadata": metadata | where | {"creationTimestamp": created}}
    found = kinds.observe(KINDS[kind], raw, at=T0, live=False)
    assert found is not None
    record_observations(LOCAL, [found])


def brought_back(project):
    return {(ref.kind, ref.name) for ref in _restored_objects(project, mirror.of_project(LOCAL, project.namespace))}


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


@pytest.fixture
def adopted(archived):
    """Label the namespace, which is older than the project, for the portal again."""
    archived.adopted = True
    see(archived, "Namespace", archived.namespace, created="2020-01-01T00:00:00Z")
    return archived


def test_what_the_portal_kept_in_a_namespace_that_it_had_given_back_is_taken_out_again(adopted):
    see(adopted, "GpuProject", names.GUARD)
    see(adopted, "RoleBinding", "gpu-portal-tenant")
    kept = {("GpuProject", names.GUARD), ("RoleBinding", "gpu-portal-tenant")}
    assert brought_back(adopted) == {("Namespace", adopted.namespace)} | kept


def test_an_adopted_namespace_whose_guards_data_is_younger_than_the_archiving_is_left_alone(adopted):
    see(adopted, "GpuProject", names.GUARD, created="2026-11-02T12:00:01Z")
    see(adopted, "RoleBinding", "gpu-portal-tenant")
    assert brought_back(adopted) == set()


def test_an_adopted_namespace_without_guards_data_is_given_back_once_that_is_known_to_be_gone(adopted):
    assert brought_back(adopted) == set()
    record_sync(LOCAL, (KINDS["GpuProject"], 7, T0))
    assert brought_back(adopted) == {("Namespace", adopted.namespace)}


def planned(manifests, snapshot):
    done = applied_objects(Target("t"))
    stale = stale_refs(manifests, snapshot, done)
    return plan(DesiredState(objects=manifests, unwanted=[stale]), snapshot, done)


def test_the_service_account_of_a_person_who_left_is_deleted_again(db):
    here, left = platform.service_account("ada"), platform.service_account("bob")
    for one in (here, left):
        observe_as_made("ServiceAccount", one, uid=one["metadata"]["name"])
    remember(here, uid="person-ada")
    actions = planned([here], mirror.of_kinds(LOCAL, "ServiceAccount"))
    assert actions == [Delete(Ref("ServiceAccount", names.PEOPLE_NAMESPACE, "person-bob"), "person-bob")]


def test_a_role_binding_of_a_role_that_no_project_gives_any_more_is_deleted(project):
    see(project, "RoleBinding", "gpu-portal-former")
    actions = planned([], mirror.of_project(LOCAL, project.namespace))
    assert actions == [
        Delete(Ref("RoleBinding", project.namespace, "gpu-portal-former"), "RoleBinding-gpu-portal-former")
    ]


def test_a_role_binding_that_names_a_person_who_left_is_applied_without_them(team, project):
    member, leaver = person(team), person(team)

    def bound():
        snapshot = mirror.of_project(LOCAL, project.namespace)
        return list(role_bindings(project_facts(project, (), snapshot, ())))

    def people(manifests):
        return [[subject["name"] for subject in one["subjects"]] for one in manifests]

    before = bound()
    leaver.memberships.all().delete()
    for one in bound():
        remember(one, uid=one["metadata"]["name"])
    reset_revisions(LOCAL)
    record_list(
        LOCAL, KINDS["RoleBinding"], [seen("RoleBinding", one, uid=one["metadata"]["name"]) for one in before], 9, T0
    )
    actions = planned(bound(), mirror.of_project(LOCAL, project.namespace))
    assert people(before) == [sorted([names.person(member.username), names.person(leaver.username)]), []]
    assert [action.reason for action in actions if isinstance(action, Apply)] == ["edited"]
    assert people(action.manifest for action in actions) == [[names.person(member.username)]]


def seen(kind, manifest, uid):
    """Return the manifest as the portal's own apply created it."""
    fields: dict[str, dict[str, str]] = {
        f"f:{name}": {} for name in manifest if name not in ("apiVersion", "kind", "metadata")
    }
    entry = {"manager": names.FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields}
    metadata = {**manifest["metadata"], "uid": uid, "resourceVersion": "7", "managedFields": [entry]}
    found = kinds.observe(KINDS[kind], {**manifest, "metadata": metadata}, at=T0, live=False)
    assert found is not None
    return found


def observe_as_made(kind, manifest, uid):
    record_observations(LOCAL, [seen(kind, manifest, uid)])


def remember(manifest, uid):
    """Record that the manifest was applied at revision 7 and is unchanged."""
    ref = Ref.of_manifest(manifest)
    where = {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name, "uid": uid, "resource_version": 7}
    fields = seen(ref.kind, manifest, uid).digest
    AppliedObject.objects.create(
        cluster_id=LOCAL, target="t", intent=digest(manifest), digest=fields, applied_at=T0, **where
    )
