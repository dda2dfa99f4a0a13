"""Actions of leads and operators, with scripts and without, and on a phone."""

import pytest
from playwright.sync_api import expect

from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Membership
from portal.tenants.project_options import ProjectOptions
from tests.support.browser import PHONE, sign_in, with_password
from tests.support.people import person


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_lead_invites_and_removes_a_member(open_page, team, project, scripts):
    newcomer = person()
    page = sign_in(open_page(java_script_enabled=scripts), with_password(person(team, "lead")))
    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Teams").click()
    page.get_by_label("Username").fill(newcomer.username)
    page.get_by_role("button", name="Invite", exact=True).click()
    expect(page.locator("main .banner")).to_contain_text(f"{newcomer.username} invited as member of vision")
    own = sign_in(open_page(java_script_enabled=scripts), with_password(newcomer))
    own.get_by_role("link", name="Accept or decline").click()
    own.get_by_role("button", name="Accept the invitation to vision").click()
    expect(own.locator("main .banner")).to_contain_text("You are now member of vision")
    page.reload()
    page.get_by_label(f"Role of {newcomer.username}").select_option("lead")
    page.get_by_role("button", name=f"Change the role of {newcomer.username}").click()
    expect(page.locator("main .banner")).to_contain_text(f"{newcomer.username} is now lead of vision")
    page.get_by_role("link", name=f"Remove {newcomer.username}").click()
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.locator("main .banner")).to_contain_text("removed from vision")
    assert not Membership.objects.filter(user=newcomer).exists()


def test_an_operator_makes_a_team(open_page, team, project):
    page = sign_in(open_page(), with_password(person(platform_role="operator")))
    page.goto("/tenants")
    page.get_by_role("link", name="New team").click()
    page.get_by_label("Slug").fill("Cells")
    page.get_by_label("Name").fill("Cells")
    page.get_by_role("button", name="Create team").click()
    expect(page.get_by_role("alert")).to_contain_text("Use lower-case letters")
    page.get_by_label("Slug").fill("cells")
    page.get_by_role("button", name="Create team").click()
    expect(page.get_by_role("heading", name="Organization")).to_be_visible()
    expect(page.get_by_role("link", name="Cells", exact=True)).to_be_visible()


def test_an_operator_sets_a_projects_object_limits(open_page, team, project):
    page = sign_in(open_page(), with_password(person(platform_role="operator")))
    page.goto("/teams/vision")
    page.get_by_role("link", name="Object quota of vision-train").click()
    page.get_by_label("Secrets", exact=True).fill("5000")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert").filter(has_text="at most 560 secrets")).to_be_visible()
    page.get_by_label("Secrets", exact=True).fill("300")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("main .banner")).to_contain_text("Object count quota of vision-train saved.")
    expect(page.get_by_role("row", name="Secrets 300")).to_be_visible()


def test_no_page_of_tenants_is_wider_than_a_phone(open_page, team, project):
    deep = tenants.create_department(SYSTEM, "d" * 40, "A department with a long name", parent=team.department)
    long = tenants.create_team(SYSTEM, deep, "t" * 40, "A team with a long name")
    tenants.create_project(SYSTEM, long, "p" * 40, "A project with a long name", ProjectOptions(namespace="n" * 63))
    page = sign_in(open_page(viewport=PHONE), with_password(person(platform_role="operator")))
    for path in (
        *("/teams", "/teams/vision", f"/teams/{long.slug}", "/tenants", "/tenants/projects/new", "/people"),
        *(
            "/projects/vision-train",
            "/projects/vision-train/objects",
            "/projects/vision-train/move",
            f"/tenants/departments/{deep.slug}/edit",
        ),
    ):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
