"""Projects that are lent to tests: one that is as a fresh one is lent again, and one that differs is thrown away."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from portal.tenants import structure
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from quotas.catalog.models import Offering
from quotas.limits import services as limits
from tests.support.cluster.allocations import held
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.lent_projects import LentProjects
from tests.support.cluster.tenants import queued_job

pytestmark = pytest.mark.cluster
Change = Callable[[Project, ApiClient], object]


@pytest.fixture(scope="module")
def projects(vision: Team, admin: ApiClient) -> Iterator[LentProjects]:
    found = LentProjects(admin, vision, as_fresh_within_s=4.0)
    yield found
    found.close()


@pytest.fixture
def never_lent(vision: Team, admin: ApiClient) -> Iterator[LentProjects]:
    """Yield projects of which none was lent yet, so that the first that comes back is the next that is lent."""
    found = LentProjects(admin, vision, as_fresh_within_s=60.0)
    yield found
    found.close()


def test_a_project_in_which_a_test_held_and_made_things_is_lent_again_without_them(
    never_lent: LentProjects, member: User, admin: ApiClient
) -> None:
    with never_lent.lent() as first:
        held(member, first, "l40s/whole")
        own = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own"}}
        for manifest in (own, queued_job("own")):
            admin.created(manifest, first.namespace)
    never_lent.settle()
    assert not any(first.slug in words for words in never_lent.thrown_away)
    with never_lent.lent() as second:
        assert second == first
        assert not admin.find("configmap", "own", second.namespace)
        assert admin.objects("jobs,pods,workloads", second.namespace) == []


def changed_setting(project: Project, _: ApiClient) -> None:
    structure.change_project(SYSTEM, project, {"object_limits": {"configmaps": 10}})


def changed_limit(project: Project, _: ApiClient) -> None:
    limits.set_limit(SYSTEM, project, Offering.objects.get(key="l40s/whole"), 1)


def changed_namespace(project: Project, admin: ApiClient) -> None:
    admin.patch("namespace", project.namespace, body={"metadata": {"labels": {"example.com/own": "yes"}}})


CHANGES: dict[str, Change] = {
    "row project": changed_setting,
    "row limits": changed_limit,
    "Namespace": changed_namespace,
}
"""What differs then → the change."""


@pytest.fixture(scope="module")
def changed(projects: LentProjects, admin: ApiClient) -> dict[str, Project]:
    """Return projects that came back changed, by what differs."""
    found = {}
    with ExitStack() as borrowed:
        for what, change in CHANGES.items():
            found[what] = borrowed.enter_context(projects.lent())
            change(found[what], admin)
    projects.settle()
    return found


@pytest.mark.parametrize("what", CHANGES)
def test_a_project_that_a_test_changed_is_thrown_away(
    what: str, changed: dict[str, Project], projects: LentProjects
) -> None:
    project = changed[what]
    [words] = [words for words in projects.thrown_away if project.slug in words]
    assert what in words
    project.refresh_from_db()
    assert project.archived_at is not None


def test_what_was_thrown_away_is_not_lent_again(changed: dict[str, Project], projects: LentProjects) -> None:
    with projects.lent() as one, projects.lent() as other:
        assert {one, other}.isdisjoint(changed.values())
