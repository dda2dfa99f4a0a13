"""Runs of schemathesis against a live server, as tests/api/schemathesis.toml configures them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.servers.basehttp import WSGIRequestHandler

from portal.api.views import schema
from portal.tenants.models import Project, Team
from tests.support.world import World, world

CONFIG = Path(__file__).parent.parent / "api" / "schemathesis.toml"
ROLES = ("member", "operator", "lead", "auditor", "viewer", "anonymous")


@pytest.fixture
def there(team: Team, other_team: Team, project: Project, settings: Any, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return the world of the access matrix, for a client that may ask as fast as it can."""
    # A client that keeps its connection waits 40 ms for each answer that is sent in two packets.
    monkeypatch.setattr(WSGIRequestHandler, "disable_nagle_algorithm", True)
    settings.API_REQUESTS_PER_MINUTE = settings.WRONG_TOKENS_PER_MINUTE = 1_000_000
    schema.make()  # for which schemathesis waits ten seconds at most
    return world(team, other_team, project)


def findings(url: str, secret: str | None, seed: str, folder: Path, *bounds: str) -> str:
    """Return what schemathesis found with a token, or without one; empty for nothing."""
    words = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "--no-color", "run"]
    words += [f"{url}/api/v1/schema", "--origin", url, "--seed", seed, *bounds]
    words += ["--header", f"Authorization: Bearer {secret}"] if secret else []
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    return f"{done.stdout[-20_000:]}{done.stderr}" if done.returncode else ""
