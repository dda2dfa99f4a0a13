"""The whole portal under load, one fault at a time; the stack runs before pytest starts: tests/stack.py."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from uuid import uuid4

import pytest

from allocations.cluster.client import WATCH_S
from deploy.local.runner import Local
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from tests.support.cluster.allocations import release_all
from tests.support.cluster.fixtures import Kubectl, kubectl, live_database, local  # noqa: F401 (fixtures)
from tests.support.cluster.quiet import until_others_are_gone
from tests.support.cluster.waiting import eventually
from tests.support.clusters import LOCAL
from tests.support.faults import judge
from tests.support.faults.crowd import Crowd
from tests.support.faults.fault import IN_FLIGHT, Fault
from tests.support.faults.witness import Witness

RIGHT_WITHIN_S = 30.0
EACH_IN_FLIGHT_S = 0.5
"""What the work of one request or release in flight may take: 0.15 to 0.25 s were measured without any fault."""
FIGURES: list[str] = []


@pytest.fixture(scope="session")
def crowd(live_database: None, kubectl: Kubectl) -> Iterator[Crowd]:
    """Create two projects in each team; yield the crowd once their namespaces are ready and the portal has nothing to
    do; release everything at the end.
    """
    people: list[tuple[User, Project]] = []
    for slug in ("vision", "language", "vision", "language"):
        project = tenants.create_project(SYSTEM, Team.objects.get(slug=slug), f"f-{uuid4().hex[:10]}", "Under load")
        people.append((User.objects.get(username=f"{slug}-member"), project))
    workqueue.enqueue(*(targets.project(LOCAL, project.slug) for _, project in people))
    for _, project in people:
        roles = partial(kubectl, "get", "rolebinding", "gpu-portal-tenant", "-n", project.namespace)
        eventually(roles, AssertionError)
    until_others_are_gone(kubectl)
    yield Crowd(people)
    for _, project in people:
        release_all(project)


@pytest.fixture(scope="session")
def witness(local: Local) -> Iterator[Witness]:
    watching = Witness(local.home)
    watching.start()
    yield watching
    watching.stop()


@pytest.fixture
def figures() -> list[str]:
    """Return the lines that are shown after all tests, to which a test adds its own."""
    return FIGURES


@pytest.fixture
def under_fault(
    request: pytest.FixtureRequest,
    crowd: Crowd,
    witness: Witness,
    kubectl: Kubectl,
) -> Fault:
    """Yield ``under_fault()``, whose block is the fault, with IN_FLIGHT requests made just before it.

    Half of the allocations left from an earlier fault are released just before, too. At the block's end everything must
    be correct within ``within_s`` and what the work in flight takes, and as many seconds billed as were held.
    ``requests`` is their number, less if the block makes requests itself; ``hidden_s`` is how long after the block no
    watch may work, and ``lost_since`` when what the portal knew began to be lost, if that was before the block, in
    seconds since the epoch.
    """

    @contextmanager
    def fault(
        *,
        requests: int = IN_FLIGHT,
        hidden_s: float = 0.0,
        within_s: float = RIGHT_WITHIN_S,
        lost_since: float | None = None,
    ) -> Iterator[None]:
        crowd.release(crowd.live()[::2])
        crowd.request_slices(requests)
        waiting = crowd.in_flight()
        began, unwatched_since = time.monotonic(), lost_since or time.time()
        yield
        ended, unwatched_until = time.monotonic(), time.time() + hidden_s
        crowd.unwatched.append((unwatched_since, unwatched_until))
        crowd.hidden_s = max(crowd.hidden_s, unwatched_until - unwatched_since + WATCH_S)
        work_s = EACH_IN_FLIGHT_S * max(waiting, crowd.in_flight())
        eventually(lambda: _is_right(crowd, kubectl), AssertionError, within_s=within_s + work_s, every_s=0.5)
        took = time.monotonic() - ended
        FIGURES.append(
            f"{request.node.name}: {waiting} in flight, fault of {ended - began:.1f} s, right after {took:.1f} s"
        )
        wrong = judge.misbilled(crowd.projects, witness, crowd.hidden_s, crowd.unwatched)
        assert not wrong, "\n".join(wrong)

    return fault


def _is_right(crowd: Crowd, kubectl: Kubectl) -> bool:
    wrong = judge.findings(crowd.projects, kubectl)
    assert not wrong, f"{len(wrong)} findings: {'; '.join(wrong[:10])}"
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in FIGURES:
        terminalreporter.write_line(line)
