"""Fixtures of tests on the real control plane. The stack runs before pytest starts: tests/stack.py."""

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from deploy.local.runner import Local
from portal.tenants import services as tenants
from portal.tenants.models import Project, Team, User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.connected import tenant  # noqa: F401 (a fixture)
from tests.support.cluster.fixtures import admin, kubectl, live_database, local  # noqa: F401 (fixtures)
from tests.support.cluster.hardware import apply, fleet, namespace, one_more, read  # noqa: F401 (fixtures)
from tests.support.cluster.jobs import submit  # noqa: F401 (a fixture)
from tests.support.cluster.leftovers import clear
from tests.support.cluster.tenants import wait_for_members
from tests.support.clusters import LOCAL

if "GPU_PORTAL_TEST_HOME" not in os.environ:
    raise pytest.UsageError("these tests need the whole portal on a cluster: python -m tests.stack tests/cluster")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--answers", metavar="N", help="how often it is asked what can be had now")
    parser.addoption("--attacks", metavar="A,B", default="", help="which attacks the hostile member tries, by name")
    parser.addoption("--lending-example", metavar="FILE", help="write what was seen of lending into this guide")
    parser.addoption("--operations", metavar="N", default="200", help="how many operations the random tenant tries")
    parser.addoption("--slices-table", metavar="FILE", help="write what was seen of every slice kind into this guide")


@pytest.fixture(scope="session")
def kubeconfig(local: Local) -> Path:
    """Return the local administrator's kubeconfig."""
    return local.kubeconfig


@pytest.fixture(scope="session")
def vision() -> Team:
    return Team.objects.get(slug="vision")


@pytest.fixture(scope="session")
def member() -> User:
    return User.objects.get(username="vision-member")


@pytest.fixture
def project(vision: Team, admin: ApiClient) -> Iterator[Project]:
    """Yield a project of team vision for one test, with its namespace ready; leave nothing of it at the end."""
    slug = f"t-{uuid4().hex[:10]}"
    project = tenants.create_project(vision, slug, "A test's own")
    workqueue.enqueue(targets.project(LOCAL, slug))
    wait_for_members(admin, project)
    yield project
    clear(admin, project)
