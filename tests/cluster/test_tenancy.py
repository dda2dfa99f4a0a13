"""Projects that are moved, archived and adopted, on the cluster: access, queue, and what is left."""

import json
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import urllib3
from django.test import Client

from allocations.cluster.client import connect
from allocations.cluster.errors import ClusterRefused
from allocations.domain.objects import Ref
from allocations.domain.phases import Outcome, Phase
from allocations.models import AppliedObject
from allocations.projects import adopt, archive, organization, transfer
from deploy.local.runner import Local
from portal.core.errors import Invalid, Refused
from portal.tenants import members, structure
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Scope, Team, User
from portal.tenants.project_options import ProjectOptions
from tests.support.cluster.allocations import ended as end
from tests.support.cluster.allocations import held, intervals, release_all, wait_for
from tests.support.cluster.api_client import NAMESPACED, ApiClient
from tests.support.cluster.stage import Person
from tests.support.cluster.tenants import gpu_pod, own_namespace, person_of, queued_job, retry_refused
from tests.support.cluster.waiting import eventually
from tests.support.clusters import LOCAL
from tests.support.people import client

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def operator() -> User:
    return User.objects.get(username="operator")


@pytest.fixture(scope="module")
def language() -> Team:
    return Team.objects.get(slug="language")


def labels(admin: ApiClient, namespace: str) -> dict[str, str]:
    return dict(admin.find("namespace", namespace).get("metadata", {}).get("labels", {}))


def people(admin: ApiClient, namespace: str) -> set[str]:
    binding = admin.find("rolebinding", "gpu-portal-tenant", namespace)
    return {subject["name"] for subject in binding.get("subjects") or ()}


# People


def reads_pods(person: Person) -> bool:
    return person.api.call("GET", NAMESPACED["Pod"].format(person.namespace)).status == 200


def test_who_is_deactivated_loses_the_cluster_and_has_it_back_when_activated(
    project: Project, local: Local, tmp_path: Path
) -> None:
    user = tenants.create_user(SYSTEM, f"guest-{project.slug}", "a long enough secret")
    members.add(SYSTEM, project.team, user.username, "member")

    def enters() -> bool:
        return reads_pods(person_of(local, tmp_path, user, project.namespace))

    eventually(enters, ClusterRefused)
    before = person_of(local, tmp_path, user, project.namespace)
    user.is_active = False
    tenants.save_person(SYSTEM, user, ["is_active"])
    eventually(lambda: not reads_pods(before))
    user.is_active = True
    tenants.save_person(SYSTEM, user, ["is_active"])
    eventually(enters, ClusterRefused)
    members.remove(SYSTEM, project.team, user.username)


# Moving


@pytest.mark.own_project
def test_a_moved_project_has_the_new_teams_people_and_queue_and_old_costs_stay(
    project: Project, member: User, operator: User, language: Team, admin: ApiClient
) -> None:
    row = end(member, held(member, project, "l40s/whole"))
    transfer.move(operator, project, language)
    eventually(lambda: people(admin, project.namespace) == {"person-language-member", "person-language-lead"})
    queue = partial(admin.find, "localqueue", "gpu", project.namespace)
    eventually(lambda: queue().get("spec", {}).get("clusterQueue") == "team-language")
    assert labels(admin, project.namespace)["gpu-portal.io/team"] == "language"
    new = User.objects.get(username="language-member")
    after = held(new, project, "l40s/whole")
    assert {interval.team for interval in intervals(row)} == {"vision"}
    assert {interval.team for interval in intervals(after)} == {"language"}
    moved = client(member).get(f"/api/v1/projects/{project.slug}")
    assert moved.status_code == 404


def test_a_project_with_something_in_it_does_not_move(
    project: Project, member: User, operator: User, language: Team
) -> None:
    row = held(member, project, "l40s/whole")
    with pytest.raises(Refused, match=row.name) as refusal:
        transfer.move(operator, project, language)
    assert "Release" in refusal.value.hint
    project.refresh_from_db()
    assert project.team.slug == "vision"


def test_a_queued_job_keeps_its_project_where_it_is(
    project: Project, member: User, operator: User, language: Team, local: Local, tmp_path: Path
) -> None:
    tenant = person_of(local, tmp_path, member, project.namespace)
    tenant.created(queued_job("own"))
    with pytest.raises(Refused, match=r"queued Jobs.*own"):
        transfer.move(operator, project, language)


# Archiving


def over_http(local: Local, user: User, project: Project, body: str | Iterator[bytes]) -> dict[str, Any]:
    """Return the running web process' answer to a request to archive; an iterator is sent in chunks."""
    _, secret = tenants.issue_token(SYSTEM, user, "test", Scope.values, timedelta(days=1))
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    url = f"{local.home.url}/api/v1/projects/{project.slug}/archive"
    answer = urllib3.request("POST", url, body=body, headers=headers, retries=False)
    return dict(answer.json())


@pytest.mark.own_project
def test_archiving_ends_what_is_held_then_takes_the_namespace_away(
    project: Project, member: User, operator: User, local: Local, tmp_path: Path, admin: ApiClient
) -> None:
    row = held(member, project, "h100/whole")
    tenant = person_of(local, tmp_path, member, project.namespace)
    tenant.created(queued_job("own"))
    answer = over_http(local, operator, project, iter([b'{"dry_', b'run": true}']))
    assert [found["name"] for found in answer["allocations"]] == [row.name]
    assert (answer["jobs"], answer["namespace"], answer["cost_per_hour"]) == (["own"], "deleted", "3.2000")
    project.refresh_from_db()
    assert project.archived_at is None
    assert over_http(local, operator, project, json.dumps({"confirm": project.slug}))["jobs"] == ["own"]
    assert wait_for(row, Phase.ENDED).outcome == Outcome.RELEASED
    eventually(lambda: not admin.find("namespace", project.namespace), within_s=60)
    eventually(lambda: not AppliedObject.objects.filter(target=f"local/project:{project.slug}").exists())
    assert [interval.end is not None for interval in intervals(row)] == [True]


@pytest.mark.own_project
def test_what_keeps_an_archived_projects_namespace_is_told(
    project: Project, operator: User, local: Local, admin: ApiClient
) -> None:
    metadata = {"name": "kept", "finalizers": ["example.com/stay"]}
    admin.created({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, project.namespace)
    archive.archive(operator, project)

    def told() -> dict[str, Any]:
        return over_http(local, operator, project, json.dumps({"dry_run": True}))

    eventually(lambda: "example.com/stay in 1 resource instances" in " ".join(told()["remaining"]), within_s=60)
    assert f"kubectl patch <kind> <name> -n {project.namespace} --type=merge" in told()["hint"]
    browser = Client()
    browser.force_login(operator)
    assert "example.com/stay in 1 resource instances" in browser.get("/tenants").content.decode()
    admin.patch("configmap", "kept", project.namespace, {"metadata": {"finalizers": None}})
    eventually(lambda: not admin.find("namespace", project.namespace), within_s=60)
    eventually(lambda: (told()["remaining"], told()["hint"]) == ([], ""))


@pytest.mark.own_project
def test_a_page_archives_only_what_was_typed(project: Project, operator: User) -> None:
    browser, path = Client(), f"/projects/{project.slug}/archive"
    browser.force_login(operator)
    assert f"Type {project.slug} to archive it" in browser.get(path).content.decode()
    for wrong in ({}, {"confirm": ""}, {"confirm": "another"}):
        answer = browser.post(path, wrong)
        assert answer.status_code == 400
        assert f"Write {project.slug}, the project&#x27;s slug, to archive it." in answer.content.decode()
    project.refresh_from_db()
    assert project.archived_at is None
    assert browser.post(path, {"confirm": f" {project.slug} "}).status_code == 302
    project.refresh_from_db()
    assert project.archived_at is not None


@pytest.mark.own_project
def test_a_project_taken_into_use_again_has_its_namespace_back(
    project: Project, member: User, operator: User, admin: ApiClient
) -> None:
    archive.archive(operator, project)
    eventually(lambda: not admin.find("namespace", project.namespace), within_s=60)
    archive.unarchive(operator, project)
    eventually(lambda: "person-vision-member" in people(admin, project.namespace), within_s=60)
    project.refresh_from_db()
    held(member, project, "l40s/whole")


# Adopting


@pytest.fixture
def old_namespace(admin: ApiClient) -> Iterator[str]:
    """Create a namespace with a pod that requests a GPU without the portal, opened to the portal by an
    administrator.
    """
    name = own_namespace(admin, **{"gpu-portal.io/adopt": "true", "example.com/own": "yes"})
    retry_refused(admin.created, gpu_pod("before"), name)
    yield name
    admin.delete("namespace", name)


@pytest.fixture
def adopted(old_namespace: str, vision: Team, operator: User, admin: ApiClient) -> Iterator[Project]:
    project = organization.create_project(operator, vision, old_namespace, "Old", ProjectOptions(adopt=True))
    eventually(lambda: people(admin, project.namespace))
    yield project
    release_all(project)
    archive.archive(operator, project)
    eventually(lambda: not AppliedObject.objects.filter(target=f"local/project:{project.slug}").exists(), within_s=60)


def test_an_adopted_namespace_warns_first_and_then_refuses(
    adopted: Project, member: User, operator: User, local: Local, tmp_path: Path, admin: ApiClient
) -> None:
    assert labels(admin, adopted.namespace)["gpu-portal.io/guard"] == "audit"
    tenant = person_of(local, tmp_path, member, adopted.namespace)

    def warned() -> bool:
        tried = tenant.create(gpu_pod("tried"), dry_run=True)
        return tried.status == 201 and "asks for a GPU without an allocation" in tried.warnings

    eventually(warned)
    waiting = adopt.refused_pods(operator, adopted)
    assert [(pod.name, pod.why) for pod in waiting] == [("before", "asks for 1 nvidia.com/gpu without an allocation")]

    structure.set_guard(operator, adopted, "enforce")

    def refused() -> bool:
        return "gpu-portal-pod-gpus" in tenant.create(gpu_pod("tried"), dry_run=True).message

    eventually(refused)
    assert labels(admin, adopted.namespace)["pod-security.kubernetes.io/enforce"] == "restricted"
    assert admin.get("pod", "before", adopted.namespace)["metadata"].get("deletionTimestamp") is None


def test_slices_can_be_held_and_used_while_the_guard_only_warns(
    adopted: Project, member: User, local: Local, tmp_path: Path
) -> None:
    row = held(member, adopted, "h100/whole")
    tenant = person_of(local, tmp_path, member, adopted.namespace)
    pod = gpu_pod("on-it", labels={"gpu-portal.io/allocation": row.name})
    for part in ("tolerations", "nodeSelector"):
        del pod["spec"][part]
    del pod["spec"]["containers"][0]["resources"]
    retry_refused(tenant.created, pod)
    eventually(lambda: tenant.get("pod", "on-it")["status"].get("phase") == "Running")


def test_an_archived_project_gives_its_adopted_namespace_back(
    adopted: Project, member: User, operator: User, local: Local, tmp_path: Path, admin: ApiClient
) -> None:
    structure.set_guard(operator, adopted, "enforce")
    row = held(member, adopted, "h100/whole")
    person_of(local, tmp_path, member, adopted.namespace).created(queued_job("own"))
    archive.archive(operator, adopted)
    wait_for(row, Phase.ENDED)
    eventually(lambda: "gpu-portal.io/managed" not in labels(admin, adopted.namespace), within_s=60)
    labels_left = labels(admin, adopted.namespace)
    assert {key for key in labels_left if key.startswith("gpu-portal.io/")} == {"gpu-portal.io/adopt"}
    assert labels_left["example.com/own"] == "yes"
    assert labels_left["pod-security.kubernetes.io/enforce"] == "restricted"
    ours = "gpuprojects,resourcequotas,limitranges,localqueues,networkpolicies,rolebindings,jobs"
    assert admin.objects(ours, adopted.namespace) == []
    assert admin.get("pod", "before", adopted.namespace)["metadata"].get("deletionTimestamp") is None


def test_a_namespace_that_no_admin_opened_is_not_adopted(vision: Team, operator: User, admin: ApiClient) -> None:
    closed = own_namespace(admin)
    try:
        with pytest.raises(Invalid, match="kubectl label namespace"):
            organization.create_project(operator, vision, closed, "Old", ProjectOptions(adopt=True))
        with pytest.raises(Invalid, match="has no namespace"):
            organization.create_project(operator, vision, "nowhere-at-all", "Old", ProjectOptions(adopt=True))
    finally:
        admin.delete("namespace", closed)
    assert not Project.objects.filter(slug__in=[closed, "nowhere-at-all"]).exists()


def test_the_portal_cannot_delete_what_it_adopted(adopted: Project) -> None:
    uid = (connect(LOCAL).get(Ref("Namespace", "", adopted.namespace)) or {})["metadata"]["uid"]
    with pytest.raises(ClusterRefused, match="was adopted"):
        connect(LOCAL).delete(Ref("Namespace", "", adopted.namespace), uid)
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": adopted.namespace, "labels": {}}}
    manifest["metadata"]["labels"] = {"gpu-portal.io/adopt": "false"}  # type: ignore[index]
    with pytest.raises(ClusterRefused, match="an admin's to set"):
        connect(LOCAL).apply(manifest)
