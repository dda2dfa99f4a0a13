"""Changes of departments, teams and projects: their effects, refusals, and what stays unchanged."""

import pytest
from django.db import IntegrityError, transaction

from portal.core.errors import Invalid, Refused
from portal.core.models import WorkItem
from portal.tenants import access, services, structure
from portal.tenants.actors import SYSTEM, System
from portal.tenants.models import Department, Project
from portal.tenants.project_options import ProjectOptions
from tests.support.people import person

pytestmark = pytest.mark.django_db
OPERATOR = System("operator")


def due() -> set[str]:
    """Return the targets enqueued since the last call, and remove them."""
    found = set(WorkItem.objects.values_list("target", flat=True))
    WorkItem.objects.all().delete()
    return found


def chain(length: int) -> list[Department]:
    """Create this many departments, each within the one before."""
    made: list[Department] = []
    for level in range(length):
        made.append(services.create_department(SYSTEM, f"level-{level}", "Level", parent=made[-1] if made else None))
    return made


def test_a_name_changes_and_the_slug_stays(project):
    structure.rename(OPERATOR, project, " Images ")
    project.refresh_from_db()
    assert (project.slug, project.name) == ("vision-train", "Images")


@pytest.mark.parametrize("name", ["", "   ", "n" * 101])
def test_a_name_that_is_none_is_refused(team, name):
    with pytest.raises(Invalid) as refusal:
        structure.rename(OPERATOR, team, name)
    assert "name" in refusal.value.errors


def test_departments_go_four_deep_and_no_deeper():
    deepest = chain(4)[-1]
    with pytest.raises(Invalid, match="at most 4 deep"):
        services.create_department(SYSTEM, "level-4", "Level", parent=deepest)


def test_what_is_below_a_department_counts_when_it_moves():
    top, middle, _ = chain(3)
    other = services.create_department(SYSTEM, "other", "Other")
    lower = services.create_department(SYSTEM, "lower", "Lower", parent=other)
    with pytest.raises(Invalid, match="at most 4 deep"):
        structure.set_parent(OPERATOR, top, lower)
    structure.set_parent(OPERATOR, middle, lower)
    assert due() >= {"local/platform"}


def test_a_department_is_never_within_itself():
    top, middle, bottom = chain(3)
    for above in (top, middle, bottom):
        with pytest.raises(Invalid, match="within itself"):
            structure.set_parent(OPERATOR, top, above)


def test_two_departments_do_not_go_within_each_other_on_what_was_read_before():
    one, other = (services.create_department(SYSTEM, slug, slug) for slug in ("one", "other"))
    read_before = Department.objects.get(pk=other.pk)
    structure.set_parent(SYSTEM, other, one)
    with pytest.raises(Invalid, match="within itself"):
        structure.set_parent(SYSTEM, one, read_before)


def test_who_is_in_a_team_sees_its_department_and_those_above(team):
    above = services.create_department(SYSTEM, "science", "Science")
    services.create_department(SYSTEM, "sales", "Sales")
    structure.set_parent(OPERATOR, team.department, above)
    seen = access.visible_departments(person(team)).values_list("slug", flat=True)
    assert set(seen) == {"research", "science"}


def test_a_team_that_moves_takes_its_projects_along(team, project):
    other = services.create_department(SYSTEM, "other", "Other")
    due()
    structure.move_team(OPERATOR, team, other)
    assert due() == {"local/platform", "local/project:vision-train"}


def test_changing_nothing_marks_nothing(team, project):
    due()
    structure.rename(OPERATOR, team, team.name)
    structure.move_team(OPERATOR, team, team.department)
    structure.set_parent(OPERATOR, team.department, None)
    structure.change_project(OPERATOR, project, {"egress": "none"})
    assert due() == set()


def test_what_a_namespace_allows_is_one_of_what_there_is(project):
    with pytest.raises(Invalid, match="restricted, baseline"):
        structure.change_project(OPERATOR, project, {"pod_security": "privileged"})
    with pytest.raises(Invalid, match="none, cluster, internet"):
        structure.change_project(OPERATOR, project, {"egress": "moon"})


@pytest.mark.parametrize("namespace", ["kube-system", "kueue-system", "gpu-portal", "gpu-portal-people", "default"])
@pytest.mark.parametrize("adopt", [True, False])
def test_a_namespace_of_the_platform_is_nobodys_project(team, namespace, adopt):
    with pytest.raises(Invalid) as refusal:
        services.create_project(SYSTEM, team, "mine", "Mine", ProjectOptions(namespace=namespace, adopt=adopt))
    assert "namespace" in refusal.value.errors


def test_a_new_namespace_is_guarded_from_birth_and_an_adopted_one_by_warnings(team, project):
    adopted = services.create_project(SYSTEM, team, "old", "Old", ProjectOptions(adopt=True))
    assert (project.guard, adopted.guard) == ("enforce", "audit")
    structure.set_guard(OPERATOR, adopted, "enforce")
    with pytest.raises(Refused, match="from birth"):
        structure.set_guard(OPERATOR, project, "audit")
    with pytest.raises(IntegrityError), transaction.atomic():
        Project.objects.filter(pk=project.pk).update(guard="audit")


def test_archiving_twice_is_archiving_once(project):
    assert structure.archive_project(OPERATOR, project)
    at = Project.objects.get().archived_at
    assert not structure.archive_project(OPERATOR, project)
    assert Project.objects.get().archived_at == at
    assert structure.unarchive_project(OPERATOR, project)
    assert Project.objects.get().archived_at is None


def test_taking_into_use_what_is_in_use_weakens_no_guard(team):
    project = services.create_project(SYSTEM, team, "old", "Old", ProjectOptions(namespace="old", adopt=True))
    structure.set_guard(SYSTEM, project, "enforce")
    assert not structure.unarchive_project(SYSTEM, project)
    project.refresh_from_db()
    assert project.guard == "enforce"


def test_an_adopted_namespace_that_comes_back_is_guarded_by_warnings(team):
    project = services.create_project(SYSTEM, team, "old", "Old", ProjectOptions(adopt=True))
    structure.set_guard(OPERATOR, project, "enforce")
    structure.archive_project(OPERATOR, project)
    structure.unarchive_project(OPERATOR, project)
    assert Project.objects.get().guard == "audit"
