"""Requests that schemathesis derives from the schema are answered as the schema tells, whoever sends them.

    python -m pytest tests/api/test_fuzzed.py --fuzz-minutes 10 --fuzz-seed 3

Every check is on: tests/api/schemathesis.toml says which status is accepted besides, and why. Briefly, every role sends
random requests and follows what answers refer to; an operator, whom no missing right stops, also sends every edge of
every value. With minutes, every role does all of it for that long.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.servers.basehttp import WSGIRequestHandler

from portal.tenants.models import Project, Team
from tests.support.world import World, world

pytestmark = pytest.mark.django_db(transaction=True)
CONFIG = Path(__file__).with_name("schemathesis.toml")
ROLES = ("anonymous", "viewer", "member", "lead", "auditor", "operator")
THOROUGH = {"operator"}
"""Roles that also get the phase of edge values, several times as long as the others, without minutes."""


@pytest.fixture
def there(team: Team, other_team: Team, project: Project, settings: Any, monkeypatch: pytest.MonkeyPatch) -> World:
    # A client that keeps its connection waits 40 ms for each answer that is sent in two packets.
    monkeypatch.setattr(WSGIRequestHandler, "disable_nagle_algorithm", True)
    settings.API_REQUESTS_PER_MINUTE = settings.WRONG_TOKENS_PER_MINUTE = 1_000_000
    return world(team, other_team, project)


@pytest.fixture
def bounds(role: str, pytestconfig: pytest.Config) -> list[str]:
    """Return the options that bound a run."""
    if minutes := float(pytestconfig.getoption("fuzz_minutes")):
        return ["--max-time", str(int(60 * minutes))]
    return ["--phases", "coverage,fuzzing,stateful" if role in THOROUGH else "fuzzing,stateful"]


@pytest.mark.parametrize("role", ROLES)
def test_every_answer_is_as_the_schema_tells(role, bounds, there, live_server, tmp_path, pytestconfig):
    seed = str(pytestconfig.getoption("fuzz_seed"))
    words = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "--no-color", "run"]
    words += [f"{live_server.url}/api/v1/schema", "--origin", live_server.url, "--seed", seed, *bounds]
    if role in there.secrets:
        words += ["--header", f"Authorization: Bearer {there.secrets[role]}"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
