"""Fixtures of the tests of the REST API and the gpu-portal command: a member with a small fleet, and commands against a
live server.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rest_framework.test import APIClient

from portal.cli import waiting
from portal.cli.main import cli
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from tests.support.fleet import fleet
from tests.support.people import client

Run = Callable[..., Result]


@pytest.fixture
def fleet_of_two_teams(team: Team, other_team: Team, project: Project) -> None:
    """Give teams vision and language a small fleet."""
    fleet(team, other_team)


@pytest.fixture
def api(fleet_of_two_teams: None, member: User) -> APIClient:
    """Return a REST client of a member of team vision."""
    return client(member)


@pytest.fixture
def signed_in(
    live_server: Any,
    fleet_of_two_teams: None,
    member: User,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> str:
    """Put the member's token and the address of the live server into the environment; return the address."""
    _, secret = tenants.issue_token(SYSTEM, member, "cli", ["read", "request"], timedelta(days=1))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("GPU_PORTAL_URL", live_server.url)
    monkeypatch.setenv("GPU_PORTAL_TOKEN", secret)
    monkeypatch.delenv("GPU_PORTAL_PROJECT", raising=False)
    monkeypatch.setattr(waiting, "LOOK_EVERY_S", 0.05)
    return str(live_server.url)


@pytest.fixture
def run(signed_in: str) -> Run:
    """Return a function that runs a command as the member and returns its result."""
    return lambda *words: CliRunner().invoke(cli, words, catch_exceptions=False)


@pytest.fixture
def start(signed_in: str) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Yield a function that starts a command as a process of its own, which ends with the test."""
    with ExitStack() as processes:

        def starting(*words: str) -> subprocess.Popen[str]:
            # A shell's background jobs ignore SIGINT, and so would what they start.
            command = ["env", "--default-signal=INT", sys.executable, "-m", "portal.cli.main", *words]
            pipe = subprocess.PIPE
            process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=dict(os.environ))
            processes.enter_context(process)
            processes.callback(process.kill)
            return process

        yield starting
