"""A member with a kubeconfig makes random operations, and lease, use and bill agree.

    python -m tests.stack tests/cluster/test_random_tenant.py --operations 5000 --seed 3

The operations are printed if it fails; the same seed repeats them.
"""

import sys
from collections.abc import Iterator

import pytest

from deploy.local.runner import Local
from portal.tenants.models import Project, User
from tests.cluster.random_tenant import invariants, trial
from tests.cluster.random_tenant.generator import Generator
from tests.cluster.random_tenant.operations import Performer
from tests.support.cluster import recorder
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.judge import over_allocated
from tests.support.cluster.lent_projects import LentProjects
from tests.support.cluster.tenants import token_of

pytestmark = pytest.mark.cluster


@pytest.fixture
def tenant(local: Local, member: User, projects: list[Project]) -> ApiClient:
    """Return a client with the token of the member's kubeconfig."""
    return ApiClient(local.home, token_of(member))


@pytest.fixture
def projects(lent_projects: LentProjects) -> Iterator[list[Project]]:
    """Yield two projects of the member's team: the one that is mostly used, and another one."""
    with lent_projects.own() as one, lent_projects.own() as other:
        yield [one, other]


@pytest.fixture
def record(admin: ApiClient, projects: list[Project]) -> Iterator[recorder.Recorder]:
    recording = recorder.Recorder(admin, [project.namespace for project in projects])
    recording.start()
    yield recording
    recording.stop()


def report(line: str) -> None:
    """Print to standard output, which pytest shows for a failed test."""
    sys.stdout.write(f"{line}\n")


def test_whatever_a_tenant_tries_lease_use_and_bill_agree(
    pytestconfig: pytest.Config,
    member: User,
    tenant: ApiClient,
    admin: ApiClient,
    projects: list[Project],
    record: recorder.Recorder,
) -> None:
    operations, seed = int(pytestconfig.getoption("operations")), int(pytestconfig.getoption("seed"))
    namespaces = [project.namespace for project in projects]
    report(f"replay with: --operations {operations} --seed {seed}")
    generator = Generator(seed, tenant, lambda: trial.namespaces_of(projects))

    def judge() -> list[str]:
        return invariants.findings(admin, namespaces) or over_allocated(admin)

    try:
        trial.run(generator, Performer(member, tenant), operations, judge, report)
    finally:
        trial.clear(tenant, admin, projects)
    record.stop()
    wrong = [*recorder.uncharged(record.samples, namespaces), *recorder.differences(record.samples, namespaces)]
    assert not wrong, "; ".join(wrong)
