"""What the gpu-portal command prints and which allocation it means: formats, names, default project, completion."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.shell_completion import ShellComplete

from allocations.models import Allocation
from portal.cli import config
from portal.cli.main import cli
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from tests.support.fleet import allocate
from tests.support.pages import ended
from tests.support.queued import job

pytestmark = pytest.mark.django_db(transaction=True)
REQUEST = ("request", "l40s/whole", "--project", "vision-train")


def completed(*words):
    *before, incomplete = words
    found = ShellComplete(cli, {}, "gpu-portal", "_GPU_PORTAL_COMPLETE").get_completions(list(before), incomplete)
    return [item.value for item in found]


def test_an_answer_is_printed_in_each_format(run):
    made = json.loads(run(*REQUEST, "--name", "train", "-o", "json").stdout)
    assert yaml.safe_load(run("show", "train", "-o", "yaml").stdout)["id"] == made["id"]
    assert run("show", "train", "-o", "jsonpath={.id}").stdout == made["id"]
    assert run("list", "-o=jsonpath={.results[*].name}").stdout == "train"
    narrow, wide = run("list").stdout, run("list", "-o", "wide").stdout
    assert "NAMESPACE" not in narrow
    assert "NAMESPACE" in wide.splitlines()[0]
    assert "BACKEND" in run("offerings", "-o", "wide").stdout
    wrong = run("list", "-o", "table")
    assert (wrong.exit_code, "text, wide, json, yaml, name, jsonpath=TEMPLATE" in wrong.stderr) == (2, True)
    assert run("costs", "-o", "name").exit_code == 2


def test_a_template_is_empty_for_a_label_that_some_rows_lack(run, member, project):
    allocate(member, project, name="labelled", labels={"stage": "prod"})
    allocate(member, project, name="bare")
    template = '{range .results[*]}{.name} {.labels.stage}{"\\n"}{end}'
    printed = run("list", "-o", f"jsonpath={template}").stdout
    assert sorted(printed.splitlines()) == ["bare ", "labelled prod"]
    assert run("show", "bare", "-o", "jsonpath={.labels.stage}").stdout == ""
    assert run("list", "-o", 'jsonpath={.results[?(@.labels.stage=="prod")].name}').stdout == "labelled"


def test_what_o_name_prints_every_command_takes(run):
    offering = run("offerings", "--kind", "whole", "-o", "name").stdout.split()[0]
    name = run("request", offering, "--project", "vision-train", "-o", "name").stdout.strip()
    row = Allocation.objects.get()
    assert name == f"allocation/{row.pk}"
    assert run("list", "-o", "name").stdout.split() == [name]
    assert run("release", name).exit_code == 0
    token = json.loads(run("token", "create", "pipeline", "-o", "json").stdout)
    assert f"token/{token['id']}" in run("token", "list", "-o", "name").stdout.split()
    assert run("token", "revoke", f"token/{token['id']}").exit_code == 0


def test_a_name_means_the_one_that_is_alive_then_that_of_the_default_project(run, team, member, project, monkeypatch):
    other = tenants.create_project(SYSTEM, team, "vision-dev", "Vision development")
    elsewhere, here = allocate(member, other, name="train"), allocate(member, project, name="train")
    ambiguous = run("show", "train", "-o", "json")
    assert (ambiguous.exit_code, json.loads(ambiguous.stderr)["reason"]) == (1, "ambiguous")
    monkeypatch.setenv("GPU_PORTAL_PROJECT", "vision-dev")
    assert run("show", "train", "-o", "jsonpath={.id}").stdout == str(elsewhere.pk)
    monkeypatch.delenv("GPU_PORTAL_PROJECT")
    ended(elsewhere)
    assert run("show", "train", "-o", "jsonpath={.id}").stdout == str(here.pk)


def test_a_default_project_is_kept_and_used(run, member):
    assert run("request", "l40s/whole").exit_code == 2
    run("login")
    assert "no project nope" in run("config", "set", "project", "nope").stderr
    assert run("config", "set", "project", "vision-train").exit_code == 0
    assert config.path().stat().st_mode & 0o777 == 0o600
    assert run("request", "l40s/whole", "-o", "jsonpath={.project}").stdout == "vision-train"
    run("login")
    assert json.loads(run("config", "view", "-o", "json").stdout)["project"] == "vision-train"
    run("config", "unset", "project")
    assert run("request", "l40s/whole").exit_code == 2
    assert run("login", "--project", "vision-train").exit_code == 0
    assert "vision-train" in run("config", "view").stdout


def test_an_idempotency_key_requests_only_once_and_shows_what_is(run):
    words = (*REQUEST, "--idempotency-key", "run-7", "-o", "json")
    first = json.loads(run(*words).stdout)
    ended(Allocation.objects.get())
    again = json.loads(run(*words).stdout)
    assert (again["id"], again["phase"]) == (first["id"], "ended")
    other = run(*REQUEST, "--count", "2", "--idempotency-key", "run-7")
    assert (other.exit_code, "--idempotency-key" in other.stderr) == (1, True)
    assert Allocation.objects.count() == 1


def test_an_extension_with_a_key_is_made_only_once(run):
    run(*REQUEST, "--name", "train")
    first, again = (run("extend", "train", "--hours", "1", "--idempotency-key", "a").stdout for _ in range(2))
    assert first == again


def test_names_of_jobs_and_ids_of_tokens_are_completed(run, project):
    job("train", project.namespace)
    made = json.loads(run("token", "create", "pipeline", "-o", "json").stdout)
    assert completed("jobs", "tr") == ["train"]
    assert str(made["id"]) in completed("token", "revoke", "")


def test_names_are_completed(run, monkeypatch):
    run(*REQUEST, "--name", "train")
    assert completed("show", "tr") == ["train"]
    assert completed("release", "x") == []
    assert completed("request", "l40s") == ["l40s/whole"]
    assert completed("request", "--project", "vis") == ["vision-train"]
    assert completed("queue", "") == ["vision"]
    assert completed("list", "-o", "ya") == ["yaml"]
    assert completed("whoa") == ["whoami"]
    monkeypatch.setenv("GPU_PORTAL_URL", "http://127.0.0.1:1")
    assert completed("show", "tr") == []


def test_a_shell_takes_the_completion_script(signed_in, run, tmp_path):
    program = tmp_path / "gpu-portal"
    program.write_text(f"#!{sys.executable}\nfrom portal.cli.main import cli\ncli()\n", encoding="utf-8")
    program.chmod(0o700)
    script = f"""
        PATH={tmp_path}:$PATH PYTHONPATH={Path.cwd()}
        export PATH PYTHONPATH
        eval "$(gpu-portal completion bash)"
        COMP_WORDS=(gpu-portal comple) COMP_CWORD=1
        _gpu_portal_completion gpu-portal
        echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["completion"]
