"""A client that openapi-python-client generates asks for slices, releases them, and knows refusals by their types."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import call_command

from allocations.models import Allocation
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import User
from tests.support.fleet import fleet
from tests.support.people import person

JOURNEY = Path(__file__).with_name("generated_client_journey.py")
PACKAGE = "gpu_portal_client"
GENERATOR = "openapi_python_client.cli"


def outcome(*words: str, **environment: str) -> tuple[int, str]:
    """Run a program of this environment; return its exit status and what it printed."""
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, env={**os.environ, **environment})
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate the client, where each warning is an operation or a type that is left out; return its folder's."""
    folder = tmp_path_factory.mktemp("client")
    schema, config = folder / "schema.json", folder / "config.json"
    call_command("spectacular", "--format=openapi-json", f"--file={schema}")
    config.write_text(json.dumps({"post_hooks": []}))
    start = f"import sys; from {GENERATOR} import app; app(sys.argv[1:])"
    words = ["generate", f"--path={schema}", "--meta=none", f"--config={config}", "--fail-on-warning"]
    status, printed = outcome("-c", start, *words, f"--output-path={folder / PACKAGE}")
    assert status == 0, printed
    return folder


def token(user: User) -> str:
    return tenants.issue_token(SYSTEM, user, "program", ["read", "request", "approve"], timedelta(days=1))[1]


def test_the_types_of_the_client_hold_strictly(generated):
    words = ["--strict", "--no-incremental", "--config-file=", str(JOURNEY)]
    status, printed = outcome("-m", "mypy", *words, MYPYPATH=str(generated))
    assert status == 0, printed


@pytest.mark.django_db(transaction=True)
def test_the_journey_ends_and_each_refusal_has_its_type(generated, live_server, team, other_team, project, member):
    fleet(team, other_team)
    tokens = {"PORTAL_TOKEN": token(member), "LEAD_TOKEN": token(person(team, "lead"))}
    status, printed = outcome(str(JOURNEY), live_server.url, project.slug, PYTHONPATH=str(generated), **tokens)
    assert status == 0, printed
    steps = [line.partition(":")[0] for line in printed.splitlines()]
    assert steps == [
        *("offered", "preview", "requested", "listed", "renewed"),
        *("name_taken", "key_reused", "released", "wrong_phase"),
        *("quota_exceeded", "count_invalid", "time_invalid", "invalid", "next"),
        *("costs", "sent back"),
        *("not_found", "token_invalid", "role_missing", "if_match_stale"),
    ]
    assert "sent back: True" in printed
    assert "next: ask for 4 of l40s/whole, mend hours" in printed
    assert Allocation.objects.get().desired == Allocation.Desired.RELEASED
