"""Parameters of the policies of queued Jobs: the node share of each flavor's GPUs, and flavors without quota."""

import pytest

from allocations.reconcile import mirror
from allocations.reconcile.project import project_facts
from portal.core.models import WorkItem
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team
from quotas.catalog.models import Flavor, Pool
from quotas.limits import services as limits
from quotas.limits.models import Limit
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet

pytestmark = pytest.mark.django_db
GPU = "nvidia.com/gpu"
SHARE = {"cpu": "15000m", "memory": "120000Mi"}


@pytest.fixture(autouse=True)
def two_flavors(team: Team) -> None:
    """Create two flavors with quota for the team, which queued Jobs request by the same resource."""
    fleet(team)
    Flavor.objects.update(node_cpu_millicores=15_000, node_memory_mib=120_000, node_pods=28)


def limit(team: Team, nominal: int, borrowing: int | None) -> None:
    limits.set_limit(SYSTEM, team, Pool.objects.get(key="h100/gpu"), nominal, borrowing=borrowing)


def resources(project: Project) -> dict[str, object]:
    found = project_facts(project, (), mirror.of_project(LOCAL, project.namespace), ()).flavors
    return {name: entry["resources"] for name, entry in found.items()}


@pytest.mark.parametrize(("nominal", "borrowing"), [(1, 0), (0, 1), (0, None)])
def test_a_flavor_of_which_the_team_has_quota_or_may_borrow_bounds_its_jobs(
    team: Team, project: Project, nominal: int, borrowing: int | None
) -> None:
    limit(team, nominal, borrowing)
    assert resources(project) == {"l40s": {GPU: SHARE}, "h100": {GPU: SHARE}}


def test_a_flavor_of_which_the_team_has_no_quota_is_told_apart(team: Team, other_team: Team, project: Project) -> None:
    apart = {"l40s": {GPU: SHARE}, "h100": {GPU: {**SHARE, "hasQuota": False}}}
    limit(team, 0, 0)
    assert resources(project) == apart
    Limit.objects.filter(team=team, pool__key="h100/gpu").delete()
    limit(other_team, 4, None)
    assert resources(project) == apart


def test_the_projects_of_a_team_follow_its_quota(team: Team, other_team: Team, project: Project) -> None:
    tenants.create_project(SYSTEM, other_team, "language-train", "Another team's")
    for change in (
        lambda: limit(team, 0, 0),
        lambda: limits.remove_limit(SYSTEM, Limit.objects.get(team=team, pool__key="h100/gpu")),
    ):
        WorkItem.objects.all().delete()
        change()
        assert set(WorkItem.objects.values_list("target", flat=True)) == {
            "local/platform",
            "local/project:vision-train",
        }
