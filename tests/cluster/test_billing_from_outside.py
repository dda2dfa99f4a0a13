"""The ledger compared with a recorder that reads the API server each second, during random requests and Jobs.

The recorder uses neither the portal's tables nor its code: `tests/support/cluster/recorder.py` has its rules.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator
from random import Random

import pytest

from deploy.local.runner import Local
from portal.tenants.models import Project, User
from tests.cluster.random_tenant import trial
from tests.support.cluster import recorder
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.honest_tenant import HonestTenant
from tests.support.cluster.lent_projects import LentProjects
from tests.support.cluster.recorder import Comparison, Recorder
from tests.support.cluster.tenants import token_of
from tests.support.cluster.usage import Holder

pytestmark = pytest.mark.cluster
STEPS = 24


@pytest.fixture
def projects(lent_projects: LentProjects) -> Iterator[list[Project]]:
    """Yield two projects of one team, so that each waits for what the other holds."""
    with lent_projects.own() as one, lent_projects.own() as other:
        yield [one, other]


def test_the_ledger_has_the_gpu_seconds_that_a_recorder_outside_the_portal_saw(
    pytestconfig: pytest.Config, local: Local, member: User, admin: ApiClient, projects: list[Project]
) -> None:
    seed = int(pytestconfig.getoption("seed"))
    tenant = ApiClient(local.home, token_of(member))
    rng, namespaces = Random(seed), [project.namespace for project in projects]
    somebody = HonestTenant(rng, member, tenant, admin)
    recording = Recorder(admin, namespaces)
    recording.start()
    recording.sampled_again(1)
    try:
        for _ in range(STEPS):
            project = rng.choice(projects)
            sys.stdout.write(f"{project.slug} {somebody.act(project)}\n")
            recording.sampled_again(rng.randint(1, 3))
    finally:
        trial.clear(tenant, admin, projects)
    recording.sampled_again(2)
    recording.stop()
    gap = recorder.longest_gap(recording.samples)
    assert gap < recorder.MAX_GAP_S, f"two samples are {gap:.1f} s apart: too long to measure the ledger by them"
    by_holder = recorder.compare(recording.samples, namespaces)
    by_project = summed_by_project(by_holder, projects)
    sys.stdout.write(f"seed {seed}: {by_project}\n")
    wrong = [*recorder.uncharged(recording.samples, namespaces), *recorder.differences(recording.samples, namespaces)]
    assert not wrong, "; ".join(wrong)
    assert {slug: comparison for slug, comparison in by_project.items() if comparison.differs} == {}
    assert all(comparison.intervals > 1 for comparison in by_project.values())


def summed_by_project(by_holder: dict[Holder, Comparison], projects: list[Project]) -> dict[str, Comparison]:
    slugs = {project.namespace: project.slug for project in projects}
    total: dict[str, Comparison] = defaultdict(Comparison)
    for holder, comparison in by_holder.items():
        total[slugs[holder.namespace]].add(comparison)
    return dict(total)
