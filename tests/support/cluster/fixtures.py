"""Fixtures of all tests on a running portal: its database, its home, and clients as the local administrator."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_django.plugin import DjangoDbBlocker

from deploy.local.runner import Local
from tests.support.cluster.api_client import ApiClient

Kubectl = Callable[..., str]


@pytest.fixture(scope="session", autouse=True)
def live_database(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Let the tests use the database of the running portal; end the session where none runs."""
    if "GPU_PORTAL_TEST_HOME" not in os.environ:
        pytest.exit("these tests need the whole portal on a cluster: python -m tests.stack FILE", returncode=4)
    with django_db_blocker.unblock():
        yield


@pytest.fixture(scope="session")
def local() -> Local:
    return Local(Path(os.environ["GPU_PORTAL_TEST_HOME"]))


@pytest.fixture(scope="session")
def kubeconfig(local: Local) -> Path:
    """Return the local administrator's kubeconfig."""
    return local.kubeconfig


@pytest.fixture(scope="session")
def admin(local: Local) -> ApiClient:
    """Return an HTTP client as the local administrator."""
    return ApiClient(local.home)


@pytest.fixture(scope="session")
def kubectl(local: Local) -> Kubectl:
    """Return kubectl as the local administrator; it returns standard output, and raises with the error output."""
    program = str(local.binaries / "kubectl")

    def run(*arguments: str, stdin: str | None = None) -> str:
        command = [program, f"--kubeconfig={local.kubeconfig}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, input=stdin, check=False, timeout=180)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    return run
