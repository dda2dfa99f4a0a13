"""The commands whoami, jobs, retry, events, open and --version."""

import json
from importlib.metadata import version

import pytest
from django.db import transaction

from allocations.models import Allocation
from portal.tenants import members
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from tests.support.cluster.waiting import eventually
from tests.support.fleet import allocate
from tests.support.pages import ended
from tests.support.queued import job

pytestmark = pytest.mark.django_db(transaction=True)


def test_whoami_tells_roles_projects_and_scopes(run, member):
    said = run("whoami").stdout
    assert member.username in said
    assert "vision (member)" in said
    assert json.loads(run("whoami", "-o", "json").stdout)["scopes"] == ["read", "request"]
    assert run("whoami", "-o", "name").stdout == f"user/{member.username}\n"


def test_jobs_are_listed_and_one_is_shown_by_name(run, project):
    uid = job("train", project.namespace)
    listed = run("jobs").stdout
    assert "train" in listed
    assert "queued" in listed
    assert str(uid) not in listed
    assert str(uid) in run("jobs", "-o", "wide").stdout
    assert run("jobs", "train", "-o", "jsonpath={.uid}").stdout == str(uid)
    assert run("jobs", f"job/{uid}", "-o", "name").stdout == f"job/{uid}\n"
    assert "There is no Job nope" in run("jobs", "nope").stderr


def test_jobs_are_listed_by_the_labels_of_their_pods(run, project):
    job("train", project.namespace, labels={"app": "train", "stage": "prod"})
    job("serve", project.namespace, labels={"app": "serve"})
    assert run("jobs", "--label", "app=train,stage=prod", "-o", "jsonpath={.results[*].name}").stdout == "train"
    assert "app=serve" in run("jobs", "-o", "wide").stdout
    assert "app=train, stage=prod" in run("jobs", "train").stdout


def test_retry_queues_again_what_needs_attention(run, member, project):
    row = allocate(member, project, name="train")
    assert run("retry", "train").exit_code == 1
    Allocation.objects.filter(pk=row.pk).update(needs_attention=True, start_failures=3)
    assert run("retry", "train").exit_code == 0
    row.refresh_from_db()
    assert not row.needs_attention


def test_events_are_listed_and_watched_until_the_end(run, start, member, project):
    row = allocate(member, project, name="train")
    listed = json.loads(run("events", "train", "-o", "json").stdout)["results"]
    assert [event["to_phase"] for event in listed] == ["queued"]
    watch = start("events", "train", "--watch", "-o", "json")
    assert json.loads(watch.stdout.readline()) == listed[0]
    with transaction.atomic():
        ended(row, message="Released.")
    out, err = watch.communicate(timeout=30)
    assert (watch.returncode, err) == (0, "")
    assert [json.loads(line)["message"] for line in out.splitlines()][-1] == "Released."


def test_events_that_are_watched_by_a_template_are_a_line_each(run, member, project):
    ended(allocate(member, project, name="train"), message="Released.")
    lines = run("events", "train", "--watch", "-o", "jsonpath={.to_phase}: {.message}").stdout.splitlines()
    assert len(lines) == len(json.loads(run("events", "train", "-o", "json").stdout)["results"]) > 1
    assert lines[-1] == "ended: Released."


def test_the_default_project_chooses_its_teams_queue(run, member, other_team, monkeypatch):
    members.add(SYSTEM, other_team, member.username, "member")
    tenants.create_project(SYSTEM, other_team, "language-chat", "Chat")
    assert "several teams" in run("queue").stderr
    monkeypatch.setenv("GPU_PORTAL_PROJECT", "language-chat")
    assert run("queue", "-o", "jsonpath={.team}").stdout == "language"


def test_the_default_projects_team_is_counted_for_in_offerings(run, member, project, monkeypatch):
    allocate(member, project, name="train")
    words = ("offerings", "-o", "json")
    asked = run(*words, "--project", "vision-train").stdout
    monkeypatch.setenv("GPU_PORTAL_PROJECT", "vision-train")
    assert run(*words).stdout == asked


def test_of_jobs_with_one_name_the_default_projects_is_meant(run, team, project, monkeypatch):
    other = tenants.create_project(SYSTEM, team, "vision-dev", "Vision development")
    job("train", project.namespace)
    here = job("train", other.namespace)
    assert "Several are named train" in run("jobs", "train").stderr
    monkeypatch.setenv("GPU_PORTAL_PROJECT", "vision-dev")
    assert run("jobs", "train", "-o", "name").stdout == f"job/{here}\n"


def test_open_opens_the_page_of_an_allocation(run, start, signed_in, member, project, tmp_path, monkeypatch):
    row = allocate(member, project, name="train")
    opened = tmp_path / "opened"
    browser = tmp_path / "xdg-open"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n', encoding="utf-8")
    browser.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    page = f"{signed_in}/allocations/{row.pk}"
    assert start("open", "train").communicate(timeout=30)[0] == f"{page}\n"
    eventually(lambda: opened.read_text(encoding="utf-8") == f"{page}\n", FileNotFoundError)
    opened.unlink()
    assert run("open", "--no-browser").stdout == f"{signed_in}/\n"
    assert not opened.exists()


def test_the_version_is_told(run):
    assert run("--version").stdout == f"gpu-portal {version('gpu-portal')}\n"
