"""kubectl with a project's kubeconfig and the credential plugin: tenants who hold nothing, and queue Jobs."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from rest_framework.test import APIClient

from allocations.cluster import names
from deploy.local.runner import Local
from portal.core.models import AuditEntry
from portal.tenants import members
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import ApiToken, Project, Team, User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.jobs import guided
from tests.support.cluster.lent_projects import LentProjects
from tests.support.cluster.waiting import eventually
from tests.support.clusters import LOCAL
from tests.support.people import client

pytestmark = pytest.mark.cluster
REPOSITORY = Path(__file__).parents[2]
Run = Callable[..., subprocess.CompletedProcess[str]]


def kubeconfig(api: APIClient, project: Project, format_: str = "exec") -> dict[str, Any]:
    answer = api.get(f"/api/v1/projects/{project.slug}/kubeconfig", {"format": format_})
    assert answer.status_code == 200, answer.json()
    assert answer["Cache-Control"] == "no-store"
    given: dict[str, Any] = answer.json()
    return given


def signed_in(local: Local, user: User, home: Path, *, token: str = "plugin") -> dict[str, str]:
    """Return the environment of a person's shell, with a token of this name."""
    _, secret = tenants.issue_token(SYSTEM, user, token, ["read", "request"], timedelta(days=1))
    return {
        "PATH": f"{home}:{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "HOME": str(home),
        "GPU_PORTAL_URL": local.home.url,
        "GPU_PORTAL_TOKEN": secret,
    }


@pytest.fixture
def shell(local: Local, tmp_path: Path) -> Callable[[User, str], Run]:
    """Return a function that returns kubectl for a person with a kubeconfig and a signed-in `gpu-portal`."""

    def of(user: User, content: str) -> Run:
        home = tmp_path / user.username
        home.mkdir()
        program = home / "gpu-portal"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m portal.cli.main "$@"\n', encoding="utf-8")
        program.chmod(0o700)
        file = home / "kubeconfig"
        file.write_text(content, encoding="utf-8")
        env = signed_in(local, user, home)
        program_of = str(local.binaries / "kubectl")

        def run(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
            command = [program_of, f"--kubeconfig={file}", *arguments]
            return subprocess.run(
                command, capture_output=True, text=True, input=stdin, check=False, timeout=120, env=env
            )

        return run

    return of


@pytest.fixture
def viewer(vision: Team, project: Project, admin: ApiClient) -> Iterator[User]:
    """Yield a new viewer of the team, whose account is in the cluster and bound in the project."""
    user = User.objects.create(username=f"viewer-{project.slug}")
    members.add(SYSTEM, vision, user.username, "viewer")
    workqueue.enqueue(targets.platform(LOCAL), targets.project(LOCAL, project.slug))

    def bound() -> bool:
        binding = admin.find("rolebinding", "gpu-portal-viewer", project.namespace)
        return names.person(user.username) in [subject["name"] for subject in binding.get("subjects") or ()]

    eventually(bound)
    eventually(lambda: admin.find("serviceaccount", names.person(user.username), "gpu-portal-people"))
    yield user
    members.remove(User.objects.get(username="operator"), vision, user.username)


def test_a_member_without_an_allocation_queues_a_job_and_no_token_is_in_the_file(
    member: User, project: Project, shell: Callable[[User, str], Run]
) -> None:
    given = kubeconfig(client(member), project)
    assert given["expires_at"] is None
    (user,) = yaml.safe_load(given["kubeconfig"])["users"]
    assert list(user["user"]) == ["exec"]
    assert user["user"]["exec"]["interactiveMode"] == "Never"
    run = shell(member, given["kubeconfig"])
    made = run("create", "-f", "-", stdin=json.dumps(guided()))
    assert made.returncode == 0, made.stderr
    assert run("get", "job", "train").returncode == 0


def test_the_token_is_kept_and_asked_for_once(
    member: User, project: Project, shell: Callable[[User, str], Run], tmp_path: Path
) -> None:
    run = shell(member, kubeconfig(client(member), project)["kubeconfig"])
    before = AuditEntry.objects.filter(action="credential.create", actor=member.username).count()
    for _ in range(3):
        done = run("get", "pods")
        assert done.returncode == 0, done.stderr
    (kept,) = (tmp_path / member.username / ".cache" / "gpu-portal").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert AuditEntry.objects.filter(action="credential.create", actor=member.username).count() == before + 1


def test_a_revoked_token_of_the_portal_gets_no_new_credential(
    member: User, project: Project, shell: Callable[[User, str], Run], tmp_path: Path
) -> None:
    run = shell(member, kubeconfig(client(member), project)["kubeconfig"])
    assert run("get", "pods").returncode == 0
    row = ApiToken.objects.filter(user=member, name="plugin").latest("created_at")
    tenants.revoke_token(member, member, row.pk)
    for kept in (tmp_path / member.username / ".cache" / "gpu-portal").iterdir():
        kept.unlink()  # as after 80 % of its life
    done = run("get", "pods")
    assert done.returncode != 0
    assert "unknown, revoked or expired" in done.stderr


def test_the_command_writes_a_kubeconfig_that_kubectl_takes_for_its_owner_alone(
    member: User, project: Project, shell: Callable[[User, str], Run], local: Local, tmp_path: Path
) -> None:
    run = shell(member, kubeconfig(client(member), project)["kubeconfig"])
    assert run("get", "pods").returncode == 0
    file, home = tmp_path / "written", tmp_path / member.username
    env = signed_in(local, member, home, token="command")
    command = ["gpu-portal", "kubeconfig", "--project", project.slug, "--format", "token", "--file", str(file)]
    subprocess.run([home / command[0], *command[1:]], check=True, timeout=60, env=env)
    assert file.stat().st_mode & 0o777 == 0o600
    taken = run("get", "pods", f"--kubeconfig={file}")
    assert taken.returncode == 0, taken.stderr


def test_a_viewer_reads_and_changes_nothing(viewer: User, project: Project, shell: Callable[[User, str], Run]) -> None:
    run = shell(viewer, kubeconfig(client(viewer), project)["kubeconfig"])
    eventually(lambda: run("get", "jobs").returncode == 0)
    assert "forbidden" in run("create", "-f", "-", stdin=json.dumps(guided())).stderr
    assert "forbidden" in run("get", "secrets").stderr


@pytest.fixture
def other(lent_projects: LentProjects) -> Iterator[Project]:
    with lent_projects.lent() as project:
        yield project


def test_the_namespace_is_only_the_context(
    member: User, project: Project, other: Project, shell: Callable[[User, str], Run]
) -> None:
    run = shell(member, kubeconfig(client(member), project)["kubeconfig"])
    assert run("auth", "can-i", "create", "jobs").stdout.strip() == "yes"
    assert run("auth", "can-i", "create", "jobs", "-n", other.namespace).stdout.strip() == "yes"
    assert run("auth", "can-i", "create", "jobs", "-n", "kube-system").stdout.strip() == "no"


def test_with_a_token_in_it_no_plugin_is_needed(member: User, project: Project, local: Local, tmp_path: Path) -> None:
    given = kubeconfig(client(member), project, "token")
    assert given["expires_at"]
    file = tmp_path / "kubeconfig"
    file.write_text(given["kubeconfig"], encoding="utf-8")
    command = [str(local.binaries / "kubectl"), f"--kubeconfig={file}", "get", "pods"]
    assert subprocess.run(command, check=False, timeout=60, env={"PATH": "/bin", "HOME": str(tmp_path)}).returncode == 0
    entry = AuditEntry.objects.filter(action="project.kubeconfig", target=project.slug).latest("pk")
    assert (entry.actor, (entry.after or {})["format"]) == (member.username, "token")
