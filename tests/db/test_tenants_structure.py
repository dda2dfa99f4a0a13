"""Changes of departments, teams and projects: their effects, refusals, and what stays unchanged."""

import pytest
from django.db import IntegrityError, transaction

from portal.core.errors import Invalid, Refused
from portal.core.models import WorkItem
from portal.tenants import access, services, structure
from portal.tenants.models import Department, Project
from tests.support.people import person

pytestmark = pytest.mark.django_db
OPERATOR = "operator"


def due() -> set[str]:
    """Return the targets enqueued since the last call, and remove them."""
    found = set(WorkItem.objects.values_list("target", flat=True))
    WorkItem.objects.all().delete()
    return found


def chain(length: int) -> list[Department]:
    """Create this many departments, each within the one before."""
    made: list[Department] = []
    for level in range(length):
        made.append(services.create_department(f"level-{level}", "Level", parent=made[-1] if made else None))
    return made


def test_a_name_changes_and_the_slug_stays(project):
    structure.rename(project, " Images ", actor=OPERATOR)
    project.refresh_from_db()
    assert (project.slug, project.name) == ("vision-train", "Images")


@pytest.mark.parametrize("name", ["", "   ", "n" * 101])
def test_a_name_that_is_none_is_refused(team, name):
    with pytest.raises(Invalid) as refusal:
        structure.rename(team, name, actor=OPERATOR)
    assert "name" in refusal.value.errors


def test_departments_go_four_deep_and_no_deeper():
    deepest = chain(4)[-1]
    with pytest.raises(Invalid, match="at most 4 deep"):
        services.create_department("level-4", "Level", parent=deepest)


def test_what_is_below_a_department_counts_when_it_moves():
    top, middle, _ = chain(3)
    other = services.create_department("other", "Other")
    lower = services.create_department("lower", "Lower", parent=other)
    with pytest.raises(Invalid, match="at most 4 deep"):
        structure.set_parent(top, lower, actor=OPERATOR)
    structure.set_parent(middle, lower, actor=OPERATOR)
    assert due() >= {"local/platform"}


def test_a_department_is_never_within_itself():
    top, middle, bottom = chain(3)
    for above in (top, middle, bottom):
        with pytest.raises(Invalid, match="within itself"):
            structure.set_parent(top, above, actor=OPERATOR)


def test_two_departments_do_not_go_within_each_other_on_what_was_read_before():
    one, other = (services.create_department(slug, slug) for slug in ("one", "other"))
    read_before = Department.objects.get(pk=other.pk)
    structure.set_parent(other, one, actor="op")
    with pytest.raises(Invalid, match="within itself"):
        structure.set_parent(one, read_before, actor="op")


def test_who_is_in_a_team_sees_its_department_and_those_above(team):
    above = services.create_department("science", "Science")
    services.create_department("sales", "Sales")
    structure.set_parent(team.department, above, actor=OPERATOR)
    seen = access.visible_departments(person(team)).values_list("slug", flat=True)
    assert set(seen) == {"research", "science"}


def test_a_team_that_moves_takes_its_projects_along(team, project):
    other = services.create_department("other", "Other")
    due()
    structure.move_team(team, other, actor=OPERATOR)
    assert due() == {"local/platform", "local/project:vision-train"}


def test_changing_nothing_marks_nothing(team, project):
    due()
    structure.rename(team, team.name, actor=OPERATOR)
    structure.move_team(team, team.department, actor=OPERATOR)
    structure.set_parent(team.department, None, actor=OPERATOR)
    structure.configure_project(project, egress="none", actor=OPERATOR)
    assert due() == set()


def test_what_a_namespace_allows_is_one_of_what_there_is(project):
    with pytest.raises(Invalid, match="restricted, baseline"):
        structure.configure_project(project, pod_security="privileged", actor=OPERATOR)
    with pytest.raises(Invalid, match="none, cluster, internet"):
        structure.configure_project(project, egress="moon", actor=OPERATOR)


@pytest.mark.parametrize("namespace", ["kube-system", "kueue-system", "gpu-portal", "gpu-portal-people", "default"])
@pytest.mark.parametrize("adopt", [True, False])
def test_a_namespace_of_the_platform_is_nobodys_project(team, namespace, adopt):
    with pytest.raises(Invalid) as refusal:
        services.create_project(team, "mine", "Mine", namespace=namespace, adopt=adopt)
    assert "namespace" in refusal.value.errors


def test_a_new_namespace_is_guarded_from_birth_and_an_adopted_one_by_warnings(team, project):
    adopted = services.create_project(team, "old", "Old", adopt=True)
    assert (project.guard, adopted.guard) == ("enforce", "audit")
    structure.set_guard(adopted, "enforce", actor=OPERATOR)
    with pytest.raises(Refused, match="from birth"):
        structure.set_guard(project, "audit", actor=OPERATOR)
    with pytest.raises(IntegrityError), transaction.atomic():
        Project.objects.filter(pk=project.pk).update(guard="audit")


def test_archiving_twice_is_archiving_once(project):
    assert structure.archive_project(project, actor=OPERATOR)
    at = Project.objects.get().archived_at
    assert not structure.archive_project(project, actor=OPERATOR)
    assert Project.objects.get().archived_at == at
    assert structure.unarchive_project(project, actor=OPERATOR)
    assert Project.objects.get().archived_at is None


def test_taking_into_use_what_is_in_use_weakens_no_guard(team):
    project = services.create_project(team, "old", "Old", namespace="old", adopt=True)
    structure.set_guard(project, "enforce", actor="op")
    assert not structure.unarchive_project(project, actor="op")
    project.refresh_from_db()
    assert project.guard == "enforce"


def test_an_adopted_namespace_that_comes_back_is_guarded_by_warnings(team):
    project = services.create_project(team, "old", "Old", adopt=True)
    structure.set_guard(project, "enforce", actor=OPERATOR)
    structure.archive_project(project, actor=OPERATOR)
    structure.unarchive_project(project, actor=OPERATOR)
    assert Project.objects.get().guard == "audit"
