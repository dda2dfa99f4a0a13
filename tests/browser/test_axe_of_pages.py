"""axe on the pages of people and operators that are not of costs, of the fleet or of the docs: in light and dark, with
the menu, every disclosure and the dialogs open.
"""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from allocations.domain.phases import Phase
from frontend import menu
from portal.audit.entries import audit
from portal.tenants.models import Project, User
from tests.support import axe, demo_fleet
from tests.support.browser import DESKTOP, sign_in, with_password
from tests.support.pages import held, in_phase, requested
from tests.support.queued import job

pytestmark = pytest.mark.skipif(
    not axe.is_installed(), reason="axe-playwright-python of requirements.lock is not installed"
)
FULL = "The team has used its quota. It starts when 1 more GPU is free."
LOOKS = pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])


@pytest.fixture
def addresses(transactional_db: None) -> list[str]:
    """Return the pages of a held allocation of the demo, of one that waits, and of a Job that waits."""
    demo_fleet.run()
    member, project = User.objects.get(username="vision-member"), Project.objects.get(slug="vision-train")
    training = held(requested(member, project, count=2, name="training"), hours=1)
    waits = in_phase(requested(member, project, name="waits"), Phase.QUEUED, "WaitingForQuota", FULL)
    uid = job("nightly", project.namespace)
    audit("operator", "limit.set", "vision/l40s/gpu", team="vision", before={"nominal": 4}, after={"nominal": 8})
    return [f"/allocations/{training.pk}", f"/allocations/{waits.pk}", f"/jobs/{uid}"]


def open_all(page: Page) -> None:
    """Open the menu and every disclosure."""
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")


def faults(page: Page, paths: list[str]) -> list[str]:
    found = []
    for path in paths:
        page.goto(path)
        open_all(page)
        found += [f"{path}: {each}" for each in axe.violations(page)]
    return found


@LOOKS
def test_axe_finds_nothing_on_the_pages_of_a_lead(open_page, addresses, scheme, width):
    lead = with_password(User.objects.get(username="vision-lead"))
    page = sign_in(open_page(viewport=DESKTOP | {"width": width}, color_scheme=scheme, bypass_csp=True), lead)
    paths = [*addresses, "/", "/request", "/request?offering=h100/whole&count=9", "/request?offering=h100/claim"]
    paths += ["/allocations", "/queues/vision", "/limits", "/limits/set"]
    paths += ["/teams", "/teams/vision", "/people", "/me", "/projects/vision-train/objects", "/audit", "/nowhere"]
    paths += ["/projects/vision-train/kubeconfig"]
    found = faults(page, paths)
    page.goto(addresses[0])
    for word in ("Release training", "Extend training"):
        page.get_by_role("link", name=word).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        found += [f"{word}: {each}" for each in axe.violations(page)]
        page.keyboard.press("Escape")
    assert found == []


@LOOKS
def test_axe_finds_nothing_on_the_pages_of_an_operator(open_page, addresses, scheme, width):
    operator = with_password(User.objects.get(username="operator"))
    page = sign_in(open_page(viewport=DESKTOP | {"width": width}, color_scheme=scheme, bypass_csp=True), operator)
    paths = [
        "/",
        "/limits",
        "/limits/changes?edit=team:vision:l40s/gpu",
        "/limits/changes?copy_from=vision&copy_to=language",
    ]
    paths += [reverse(name) for name in menu.items(operator)]
    paths += ["/tenants/teams/new", "/tenants/teams/vision/edit", "/projects/vision-train"]
    paths += ["/projects/vision-train/move", "/projects/vision-train/archive", "/projects/vision-train/guard"]
    paths += ["/flavors", "/flavors/h100", "/people", "/teams/vision"]
    assert faults(page, paths) == []
