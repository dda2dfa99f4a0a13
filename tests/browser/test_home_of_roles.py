"""Home of each role, the fleet and a node: axe in light and dark, a narrow window, keyboard, and without scripts."""

from uuid import uuid4

import pytest
from playwright.sync_api import expect

from allocations.domain.phases import Phase
from portal.core import clock
from portal.tenants import members
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from quotas.catalog import services as catalog
from quotas.catalog.discovery import discover
from quotas.catalog.models import Device, Flavor, Node
from quotas.catalog.sync import sync
from quotas.metering import services as metering
from tests.support import axe
from tests.support.browser import sign_in, with_password
from tests.support.clusters import LOCAL
from tests.support.gpu_facts import dra_node, plugin_node, slices_of
from tests.support.mig_facts import cut_gpu
from tests.support.pages import held, in_phase, requested
from tests.support.people import person
from tests.support.queued import job
from tests.support.quotas import attribution, l40s_nodes, mig_node

FULL = "Your team has used its quota. It starts when 1 more GPU is free."
UNTAINTED = "no GPU taint, so not offered: any pod could land here"
PAGES = ("/", "/fleet", "/fleet?state=attention", "/fleet/nodes/local/h100-0", "/fleet/nodes/local/l40s-1")
HELD = {"gpu-0-mig-3g40gb-9-4": "vision", "gpu-0-mig-1g10gb-19-0": "language", "gpu-3": "vision"}
SCRIPTS = pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])


@pytest.fixture
def busy(member, project):
    """Have a divided GPU held by two teams, entries that wait, a GPU and a node that cannot be used, and a proposal."""
    held(requested(member, project, name="training", count=2), hours=3)
    in_phase(requested(member, project, name="later"), Phase.QUEUED, "WaitingForQuota", FULL)
    job("nightly-evaluation", project.namespace)
    gpus = [device for number in range(8) for device in cut_gpu("h100-0", number)]
    nodes = [*l40s_nodes(), mig_node(), dra_node(), plugin_node("x100-0", "NVIDIA-X100")]
    sync(LOCAL, discover(nodes, [slices_of("h100-0", *gpus)]), {})
    catalog.accept_flavor(SYSTEM, Flavor.objects.get(name="h100"))
    tenants.create_team(SYSTEM, project.team.department, "language", "Language")
    for device, team in (
        ("gpu-0-mig-3g40gb-9-4", "vision"),
        ("gpu-0-mig-1g10gb-19-0", "language"),
        ("gpu-3", "vision"),
    ):
        facts = attribution(team=team, project=f"{team}-train", node="h100-0", flavor="h100")
        metering.open_interval(uuid4(), uuid4(), f"{LOCAL}/h100-0/{device}", clock.now(), facts, 1, {"kind": "test"})
    Device.objects.filter(name="gpu-5").update(healthy=False)
    Node.objects.filter(name="l40s-1").update(flavor=None, problem=UNTAINTED)


@pytest.fixture
def operator(team, busy):
    user = with_password(person(platform_role="operator"))
    members.add(SYSTEM, team, user.username, "lead")
    return user


@pytest.mark.skipif(not axe.is_installed(), reason="axe-playwright-python of requirements.lock is not installed")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_page, operator, scheme):
    page = sign_in(open_page(color_scheme=scheme, bypass_csp=True), operator)
    found = []
    for path in PAGES:
        page.goto(path)
        for details in page.locator("details:not(.menu) > summary").all():
            details.click()
        found += [(path, each) for each in axe.violations(page)]
    assert not found


@SCRIPTS
def test_no_page_is_wider_than_a_narrow_window(open_page, operator, scripts):
    page = sign_in(open_page(viewport={"width": 320, "height": 780}, java_script_enabled=scripts), operator)
    for path in PAGES:
        page.goto(path)
        page.set_viewport_size({"width": 320, "height": 780})
        widest = page.locator("main").evaluate("main => main.ownerDocument.documentElement.scrollWidth")
        assert widest <= 320, path


@SCRIPTS
def test_an_operator_learns_in_one_step_why_a_node_is_not_offered(open_page, operator, scripts):
    page = sign_in(open_page(java_script_enabled=scripts), operator)
    link = page.get_by_role("link", name="l40s-1", exact=True)
    link.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Why it is not offered")).to_be_visible()
    expect(page.get_by_text(UNTAINTED)).to_be_visible()


def test_an_operator_sees_the_fleet_change_and_follows_a_gpu_to_its_holder(open_page, operator):
    page = sign_in(open_page(), operator)
    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Fleet").click()
    expect(page.get_by_title("gpu-6: free")).to_be_visible()
    facts = attribution(node="h100-0", flavor="h100")
    holder = uuid4()
    metering.open_interval(uuid4(), holder, f"{LOCAL}/h100-0/gpu-6", clock.now(), facts, 1, {"kind": "test"})
    page.get_by_title("gpu-6: vision / vision-train, ada").click()
    row = page.locator("#gpu-6")
    expect(row.get_by_role("link")).to_have_attribute("href", f"/allocations/{holder}")


@SCRIPTS
def test_a_lead_sees_the_month_and_who_waits(open_page, team, busy, scripts):
    page = sign_in(open_page(java_script_enabled=scripts), with_password(person(team, "lead")))
    led = page.get_by_role("region", name="Teams you lead")
    expect(led.get_by_role("row", name="vision")).to_contain_text("EUR")
    page.get_by_role("region", name="Who waits").get_by_role("link", name="later").click()
    page.wait_for_url("/allocations/*")
