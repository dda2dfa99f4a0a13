"""The pages of teams and the organization: what leads and operators see and do there, and in how many queries."""

import pytest
from django.utils.html import escape

from portal.core import clock, heartbeat
from portal.tenants import services, structure
from portal.tenants.actors import SYSTEM, System
from portal.tenants.models import Department, Invitation, Membership, Project
from tests.support.clusters import LOCAL
from tests.support.pages import browser_of, text
from tests.support.people import person
from tests.support.rows_read import assert_constant
from tests.support.two_clusters import NAMESPACE, mirrored

pytestmark = pytest.mark.django_db
FINALIZERS_OUT = """'{"metadata": {"finalizers": null}}'"""


@pytest.fixture
def lead(team):
    heartbeat.beat("worker")
    heartbeat.beat("watcher")
    return person(team, "lead")


@pytest.fixture
def operator(lead):
    return browser_of(person(platform_role="operator"))


def test_a_lead_invites_who_accepts_changes_the_role_and_removes_the_person(team, lead):
    browser, newcomer = browser_of(lead), person()
    name = newcomer.username
    invited = text(browser.post("/teams/vision", {"username": name, "role": "viewer"}, follow=True))
    assert f"{name} invited as viewer of vision" in invited
    assert "Withdraw" in invited
    assert not Membership.objects.filter(user=newcomer).exists()
    own = browser_of(newcomer)
    assert f"{lead.username} invites you to team vision as viewer" in text(own.get("/"))
    assert "Invitations" in text(own.get("/me"))
    row = Invitation.objects.get()
    assert "You are now viewer of vision." in text(own.post(f"/me/invitations/{row.pk}/accept", follow=True))
    browser.post("/teams/vision", {"username": name, "role": "member"})
    assert Membership.objects.get(user=newcomer).role == "member"
    assert f"Remove {name} from vision?" in text(browser.get(f"/teams/vision/members/{name}/remove"))
    browser.post(f"/teams/vision/members/{name}/remove")
    assert not Membership.objects.filter(user=newcomer).exists()


def test_the_page_answers_the_same_of_who_exists_and_who_does_not(team, lead):
    browser, told = browser_of(lead), []
    for name in (person().username, "nobody-at-all"):
        answer = browser.post("/teams/vision", {"username": name, "role": "member"}, follow=True)
        banner = next(str(message) for message in answer.context["messages"])
        told.append((answer.redirect_chain, banner.replace(name, "NAME")))
    assert told[0] == told[1]


def test_an_invitation_is_declined_or_withdrawn(team, lead):
    browser, newcomer = browser_of(lead), person()
    for path in ("/me/invitations/{}/decline", "/teams/vision/invitations/{}/withdraw"):
        browser.post("/teams/vision", {"username": newcomer.username, "role": "viewer"})
        row = Invitation.objects.get()
        asker = browser_of(newcomer) if path.startswith("/me") else browser
        assert asker.post(path.format(row.pk)).status_code == 302
        assert not Invitation.objects.exists()


def test_an_operator_adds_a_member_at_once(team, operator):
    newcomer = person()
    page = text(operator.post("/teams/vision", {"username": newcomer.username, "role": "viewer"}, follow=True))
    assert f"{newcomer.username} is now viewer of vision." in page
    assert "Add a member" in page


def test_who_only_reads_finds_no_button_that_would_be_refused(team, lead, project):
    page = text(browser_of(person(team, "viewer")).get("/teams/vision"))
    assert lead.username in page
    assert "vision-train" in page
    assert "Add a member" not in page
    assert "Invite a member" not in page
    assert "Remove" not in page
    assert 'href="/projects/vision-train"' not in page


def test_a_mistake_is_told_at_its_field_and_nothing_is_lost(team, operator):
    answer = operator.post("/teams/vision", {"username": "nobody", "role": "lead"})
    page = text(answer)
    assert answer.status_code == 400
    assert "Nobody is called" in page
    assert 'value="nobody"' in page


def test_the_last_lead_stays_and_is_told_why(team, lead):
    answer = browser_of(lead).post(f"/teams/vision/members/{lead.username}/remove")
    assert answer.status_code == 409
    assert "Make someone else lead first" in text(answer)


def test_a_person_of_one_team_comes_straight_to_it(team, lead):
    assert browser_of(lead).get("/teams")["Location"] == "/teams/vision"
    assert "You are in no team" in text(browser_of(person()).get("/teams"))


def test_the_tree_shows_departments_within_departments(operator, team, project):
    above = services.create_department(SYSTEM, "science", "Science")
    structure.set_parent(System("operator"), team.department, above)
    page = text(operator.get("/tenants"))
    assert page.index("Science") < page.index("Research") < page.index("vision-train")
    assert "/projects/vision-train/archive" in page
    assert "/projects/vision-train/objects" in page


def test_what_keeps_an_archived_projects_namespace_is_shown_with_the_command_that_frees_it(operator, project):
    assert "To free it" not in text(operator.get("/tenants"))
    Project.objects.update(archived_at=clock.now())
    mirrored(LOCAL, "Namespace", NAMESPACE, deleting=True, remaining=["example.com/stay in 1 resource instances"])
    page = text(operator.get("/tenants"))
    assert "example.com/stay in 1 resource instances" in page
    command = f"kubectl patch <kind> <name> -n {NAMESPACE} --type=merge -p "
    assert f"To remove what blocks it: <code>{escape(command)}{escape(FINALIZERS_OUT)}</code>" in page


def test_an_auditor_reads_the_tree_and_finds_nothing_to_press(lead, project):
    page = text(browser_of(person(platform_role="auditor")).get("/tenants"))
    assert "vision-train" in page
    assert "New team" not in page
    assert "Archive" not in page


def test_an_operator_makes_and_moves_a_department_a_team_and_a_project(operator, team):
    operator.post("/tenants/departments/new", {"slug": "bio", "name": "Bio", "parent": "research"})
    operator.post("/tenants/teams/new", {"slug": "cells", "name": "Cells", "department": "bio"})
    values = {
        "slug": "cells-dev",
        "name": "Cells",
        "team": "cells",
        "pod_security": "baseline",
        "egress": "cluster",
        "exposure": "node-port",
    }
    operator.post("/tenants/projects/new", values)
    project = Project.objects.get(slug="cells-dev")
    assert (project.team.department.slug, project.pod_security, project.egress, project.exposure) == (
        *("bio", "baseline", "cluster", "node-port"),
    )
    operator.post("/tenants/teams/cells/edit", {"name": "All cells", "department": "research"})
    operator.post("/tenants/departments/bio/edit", {"name": "Biology", "parent": ""})
    project = Project.objects.get(slug="cells-dev")
    assert (project.team.name, project.team.department.slug) == ("All cells", "research")
    bio = Department.objects.get(slug="bio")
    assert (bio.name, bio.parent) == ("Biology", None)


def test_a_refusal_of_the_service_is_shown_in_the_form(operator, team):
    answer = operator.post("/tenants/departments/research/edit", {"name": "Other", "parent": "research"})
    assert answer.status_code == 400
    assert "cannot be within itself" in text(answer)
    assert Department.objects.get().name == "Research"
    taken = operator.post("/tenants/teams/new", {"slug": "vision", "name": "Vision", "department": "research"})
    assert "exists already" in text(taken)


def test_a_lead_may_only_name_a_project(team, lead, project):
    browser = browser_of(lead)
    assert "pod_security" not in text(browser.get("/projects/vision-train"))
    browser.post("/projects/vision-train", {"name": "Images", "egress": "internet"})
    project.refresh_from_db()
    assert (project.name, project.egress) == ("Images", "none")


def test_a_project_is_archived_when_its_slug_was_typed(operator, project):
    assert operator.post("/projects/vision-train/archive", {"confirm": "vision-train"}).status_code == 302
    project.refresh_from_db()
    assert project.archived_at is not None


@pytest.mark.parametrize("typed", [{}, {"confirm": ""}, {"confirm": "vision"}, {"confirm": "Vision-Train"}])
def test_without_its_slug_no_project_is_archived(operator, project, typed):
    operator.post("/projects/vision-train/archive", typed)  # what would end, as the page says it, needs the cluster
    project.refresh_from_db()
    assert project.archived_at is None


def test_an_archived_project_can_be_taken_into_use_again(operator, project):
    structure.archive_project(System("operator"), project)
    assert "Restore" in text(operator.get("/tenants"))
    operator.post("/projects/vision-train/unarchive")
    project.refresh_from_db()
    assert project.archived_at is None


@pytest.mark.parametrize("path", ["/tenants", "/teams", "/teams/vision"])
def test_pages_cost_the_same_however_many_tenants_there_are(operator, team, lead, path):
    def grow(*numbers):
        for number in numbers:
            services.create_department(SYSTEM, f"d-{number}", "D", parent=team.department)
            other = services.create_team(SYSTEM, team.department, f"t-{number}", "T")
            services.create_project(SYSTEM, other, f"o-{number}", "O")
            services.create_project(SYSTEM, team, f"p-{number}", "P")
            person(team, "viewer")

    grow(0)
    assert_constant(lambda: operator.get(path), lambda: grow(*range(1, 50)), at_most=15)


def test_an_operator_deletes_a_team_that_was_made_by_mistake_and_no_other(team, project, operator):
    operator.post("/tenants/teams/new", {"slug": "mistake", "name": "Oops", "department": "research"})
    assert 'href="/tenants/teams/mistake/delete"' in operator.get("/tenants/teams/mistake/edit").content.decode()
    assert "Delete team mistake?" in text(operator.get("/tenants/teams/mistake/delete"))
    assert "Team mistake deleted." in text(operator.post("/tenants/teams/mistake/delete", follow=True))
    assert operator.get("/tenants/teams/mistake/edit").status_code == 404
    assert "costs refer to" in text(operator.post("/tenants/teams/vision/delete"))
    assert operator.get("/tenants/teams/vision/edit").status_code == 200
