"""Fixtures of tests on the real control plane. The stack runs before pytest starts: tests/stack.py."""

from collections.abc import Iterator

import pytest

from deploy.local.control_plane import serves
from portal.tenants.models import Project, Team, User
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.connected import tenant  # noqa: F401 (a fixture)
from tests.support.cluster.every_kind import every_kind  # noqa: F401 (a fixture)
from tests.support.cluster.fixtures import (  # noqa: F401 (fixtures)
    admin,
    kubeconfig,
    kubectl,
    live_database,
    local,
)
from tests.support.cluster.hardware import apply, fleet, namespace, one_more, read  # noqa: F401 (fixtures)
from tests.support.cluster.jobs import submit  # noqa: F401 (a fixture)
from tests.support.cluster.lent_projects import LentProjects
from tests.support.cluster.mig_changes import cut  # noqa: F401 (a fixture)

THROWN_AWAY: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--answers", metavar="N", help="how often it is asked what can be had now")
    parser.addoption("--attacks", metavar="A,B", default="", help="which attacks the hostile member tries, by name")
    parser.addoption("--lending-example", metavar="FILE", help="write what was seen of lending into this guide")
    parser.addoption("--operations", metavar="N", default="200", help="how many operations the random tenant tries")
    parser.addoption("--slices-table", metavar="FILE", help="write what was seen of every slice kind into this guide")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests on a fleet with a node of every kind last, and then those that look at what all others did; skip
    those of later versions of Kubernetes.
    """
    for item in items:
        if (mark := item.get_closest_marker("since")) and not serves(mark.args[0]):
            item.add_marker(pytest.mark.skip(reason=f"Kubernetes {mark.args[0]} brings what it needs"))
    items.sort(key=lambda item: "every_kind" in getattr(item, "fixturenames", ()))
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


@pytest.fixture(scope="session")
def vision() -> Team:
    return Team.objects.get(slug="vision")


@pytest.fixture(scope="session")
def member() -> User:
    return User.objects.get(username="vision-member")


@pytest.fixture(scope="session")
def lent_projects(vision: Team, admin: ApiClient) -> Iterator[LentProjects]:
    """Yield the projects of team vision that are lent to tests."""
    projects = LentProjects(admin, vision)
    yield projects
    projects.close()
    THROWN_AWAY.extend(projects.thrown_away)


@pytest.fixture
def project(request: pytest.FixtureRequest, lent_projects: LentProjects) -> Iterator[Project]:
    """Yield a project of team vision with its namespace ready; one that no test has had if it is marked
    ``own_project``.
    """
    is_own = request.node.get_closest_marker("own_project")
    with lent_projects.own() if is_own else lent_projects.lent() as project:
        yield project


@pytest.fixture
def settled(request: pytest.FixtureRequest, lent_projects: LentProjects) -> None:
    """Let nothing be done in the background for other tests while a test measures what the portal does."""
    if "project" in request.fixturenames:
        request.getfixturevalue("project")
    lent_projects.settle()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in THROWN_AWAY:
        terminalreporter.write_line(f"A project that was lent was thrown away: {line}")
