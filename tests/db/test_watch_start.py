"""The targets that are enqueued once every kind has been listed."""

import pytest

from allocations.management.commands.watch import enqueue_everything
from allocations.models import MirrorObject
from portal.core import clock
from portal.core.models import WorkItem
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.pages import ended, held
from tests.support.people import person

pytestmark = pytest.mark.django_db


def marked() -> set[str]:
    enqueue_everything(LOCAL)
    return set(WorkItem.objects.values_list("target", flat=True))


@pytest.fixture(autouse=True)
def _nothing_is_due(team, project):
    fleet(team)
    WorkItem.objects.all().delete()


def test_what_lives_is_looked_at_and_what_has_ended_is_not(team, project):
    live, over = allocate(person(team), project), ended(held(allocate(person(team), project)))
    WorkItem.objects.all().delete()
    assert marked() == {
        "local/platform",
        "local/inventory",
        "local/adoption",
        "local/project:vision-train",
        f"local/allocation:{live.pk}",
    }
    assert over.pk != live.pk


def test_of_archived_projects_those_are_looked_at_whose_namespace_is_there(project):
    project.archived_at = clock.now()
    project.save()
    assert "local/project:vision-train" not in marked()
    there = {"kind": "Namespace", "name": project.namespace, "uid": "1", "resource_version": 1}
    MirrorObject.objects.create(cluster_id=LOCAL, **there, seen_at=clock.now())
    assert "local/project:vision-train" in marked()
