"""Journeys of each role on the demo's fleet: how many clicks they take, and that nobody scrolls to the next button."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from allocations.domain.phases import Phase
from allocations.models import Allocation
from portal.tenants.models import Membership, Project, User
from quotas.catalog.models import Node
from quotas.limits.models import Limit
from tests.support import demo_fleet
from tests.support.browser import DESKTOP, Clicks, sign_in, with_password
from tests.support.pages import held, in_phase, requested
from tests.support.people import person
from tests.support.queued import job

PHONE = {"width": 390, "height": 844}
SIZES = pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
SCRIPTS = pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
UNTAINTED = "no GPU taint, so not offered: any pod could land here"
FULL = "The team has used its quota. It starts when 1 more GPU is free."


@pytest.fixture(autouse=True)
def _demo(transactional_db: None) -> None:
    demo_fleet.run()


def somebody(username: str) -> User:
    return with_password(User.objects.get(username=username))


def section(page: Page, word: str) -> Locator:
    return page.get_by_role("navigation", name="Sections").get_by_role("link", name=word, exact=True)


def button(page: Page) -> Locator:
    return page.get_by_role("button", name="Request", exact=True)


def height(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollHeight"))


@SCRIPTS
def test_an_alternative_to_a_refused_request_is_taken_with_five_clicks(open_page, scripts):
    page = sign_in(open_page(viewport=DESKTOP, java_script_enabled=scripts), somebody("vision-member"))
    clicks = Clicks()
    clicks.on(section(page, "Request"))
    page.get_by_label("Slices", exact=True).fill("9")
    clicks.on(page.locator("label.offer", has_text="h100/whole"))
    clicks.on(button(page))
    chip = page.locator("#refusal .alternatives a").first
    expect(chip).to_be_in_viewport(ratio=1)
    clicks.on(chip)
    expect(page.locator("#chosen")).not_to_contain_text("9 ×")
    expect(button(page)).to_be_in_viewport(ratio=1)
    clicks.on(button(page))
    expect(page.locator("#live .phase")).to_have_text("Queued")
    assert clicks.number == 5
    assert Allocation.objects.get().count < 9


@SIZES
def test_an_alternative_to_a_queued_request_is_taken_with_four_clicks(open_page, size):
    member, project = somebody("vision-member"), Project.objects.get(slug="vision-train")
    quota = Limit.objects.get(team__slug="vision", pool__key="l40s/gpu").nominal
    held(requested(member, project, count=quota, name="training"))
    in_phase(requested(member, project, name="waits"), Phase.QUEUED, "WaitingForQuota", FULL)
    page, clicks = sign_in(open_page(viewport=size), member), Clicks()
    clicks.on(page.get_by_role("link", name="waits", exact=True))
    clicks.on(page.get_by_role("link", name="See what fits now"))
    chip = page.locator("#instead .alternatives a", has_text="fits now").first
    offering = parse_qs(urlsplit(chip.get_attribute("href") or "").query)["offering"]
    clicks.on(chip)
    expect(page.locator("#preview")).to_contain_text("Fits now")
    expect(button(page)).to_be_in_viewport(ratio=1)
    clicks.on(button(page))
    expect(page.locator("#live .phase")).to_have_text("Queued")
    assert clicks.number == 4
    assert [Allocation.objects.latest("created_at").offering.key] == offering != ["l40s/whole"]


@SCRIPTS
def test_a_mig_slice_is_requested_and_connected_with_four_clicks(open_page, scripts):
    page = sign_in(open_page(viewport=DESKTOP, java_script_enabled=scripts), somebody("vision-member"))
    clicks = Clicks()
    clicks.on(section(page, "Request"))
    clicks.on(page.locator("label.offer", has_text="a100/mig-1g.10gb"))
    clicks.on(button(page))
    expect(page.locator("#live .phase")).to_have_text("Queued")
    held(Allocation.objects.get())
    page.reload()
    file = {"body": "kind: Config", "headers": {"Content-Disposition": "attachment; filename=gpu-portal.kubeconfig"}}
    page.route("**/kubeconfig", lambda route: route.fulfill(**file))
    with page.expect_download():
        clicks.on(page.get_by_role("button", name="Download gpu-portal.kubeconfig"))
    expect(page.get_by_label("kubectl for pod.yaml")).to_contain_text("kubectl exec -it pod/")
    assert clicks.number == 4


@SIZES
def test_a_claim_is_built_and_requested_with_three_clicks(open_page, size):
    page, clicks = sign_in(open_page(viewport=size), somebody("vision-member")), Clicks()
    clicks.on(section(page, "Request"))
    clicks.on(page.locator("label.offer", has_text="h100/claim"))
    first = page.get_by_role("region", name="Request 1", exact=True)
    first.get_by_label("Device", exact=True).select_option("MIG slice")
    expect(button(page)).to_be_in_viewport(ratio=1)
    first.get_by_label("MIG profile").select_option("3g.40gb")
    first.get_by_label("How many").fill("2")
    expect(page.locator("#chosen")).to_contain_text("2 × MIG slice 3g.40gb")
    expect(button(page)).to_be_in_viewport(ratio=1)
    clicks.on(button(page))
    expect(page.locator("#live .phase")).to_have_text("Queued")
    assert clicks.number == 3
    claim = Allocation.objects.get().claim
    assert claim is not None
    [asked] = claim["requests"]
    assert (asked["device"], asked["profile"], asked["count"]) == ("mig", "3g.40gb", 2)


@SCRIPTS
@SIZES
def test_a_member_is_added_with_two_clicks_of_a_lead_and_two_of_the_person(open_page, size, scripts):
    newcomer = with_password(person())
    page, clicks = sign_in(open_page(viewport=size, java_script_enabled=scripts), somebody("vision-lead")), Clicks()
    clicks.on(section(page, "Teams"))
    page.get_by_label("Username").fill(newcomer.username)
    clicks.on(page.get_by_role("button", name="Invite", exact=True))
    expect(page.locator("main .banner")).to_contain_text(f"{newcomer.username} invited as member of vision")
    assert height(page) <= 3 * size["height"]
    own, clicks_of_person = sign_in(open_page(viewport=size, java_script_enabled=scripts), newcomer), Clicks()
    expect(own.get_by_role("link", name="Accept or decline")).to_be_in_viewport(ratio=1)
    clicks_of_person.on(own.get_by_role("link", name="Accept or decline"))
    accept = own.get_by_role("button", name="Accept the invitation to vision")
    expect(accept).to_be_in_viewport(ratio=1)
    clicks_of_person.on(accept)
    expect(own.locator("main .banner")).to_contain_text("You are now member of vision")
    assert (clicks.number, clicks_of_person.number) == (2, 2)
    assert Membership.objects.get(user=newcomer).role == "member"


@SCRIPTS
@SIZES
def test_why_a_node_is_not_offered_is_one_click_from_home(open_page, size, scripts):
    Node.objects.filter(name="l40s-1").update(flavor=None, problem=UNTAINTED)
    assert Node.objects.get(name="l40s-1").problem
    page, clicks = sign_in(open_page(viewport=size, java_script_enabled=scripts), somebody("operator")), Clicks()
    expect(page.get_by_role("region", name="Unavailable")).to_contain_text(UNTAINTED)
    clicks.on(page.get_by_role("link", name="l40s-1", exact=True))
    expect(page.get_by_role("heading", name="Why it is not offered")).to_be_in_viewport(ratio=1)
    expect(page.get_by_text(UNTAINTED)).to_be_in_viewport(ratio=1)
    assert clicks.number == 1


@SCRIPTS
@SIZES
def test_a_lead_releases_an_idle_hold_of_somebody_with_two_clicks_from_home(open_page, size, scripts):
    member, project = somebody("vision-member"), Project.objects.get(slug="vision-train")
    row = held(requested(member, project, name="forgotten"), hours=6)
    page, clicks = sign_in(open_page(viewport=size, java_script_enabled=scripts), somebody("vision-lead")), Clicks()
    counter = page.get_by_role("link", name="Holds without a pod")
    expect(counter).to_be_in_viewport(ratio=1)
    expect(counter).to_contain_text("vision-member")
    clicks.on(page.get_by_role("link", name="Release forgotten of vision-member"))
    release = page.get_by_role("button", name="Release", exact=True)
    expect(release).to_be_in_viewport(ratio=1)
    clicks.on(release)
    expect(page.locator("main .banner").first).to_contain_text("Release of forgotten requested.")
    assert clicks.number == 2
    row.refresh_from_db()
    assert row.desired == Allocation.Desired.RELEASED


@SCRIPTS
@SIZES
def test_why_a_job_waits_is_one_click_from_home_of_its_lead_and_two_of_a_member(open_page, size, scripts):
    job("nightly", Project.objects.get(slug="vision-train").namespace)
    ahead = "Release what the team no longer needs"
    page, clicks = sign_in(open_page(viewport=size, java_script_enabled=scripts), somebody("vision-lead")), Clicks()
    clicks.on(page.get_by_role("region", name="Who waits").get_by_role("link", name="nightly"))
    expect(page.get_by_text(ahead)).to_be_in_viewport(ratio=1)
    assert clicks.number == 1
    page, clicks = sign_in(open_page(viewport=size, java_script_enabled=scripts), somebody("vision-member")), Clicks()
    clicks.on(page.get_by_role("link", name="Team queue"))
    expect(page.get_by_role("row", name="nightly")).to_contain_text(ahead)
    clicks.on(page.get_by_role("link", name="nightly", exact=True))
    expect(page.get_by_text(ahead)).to_be_in_viewport(ratio=1)
    assert clicks.number == 2


@SCRIPTS
def test_a_team_with_a_quota_takes_seven_clicks(open_page, scripts):
    page = sign_in(open_page(viewport=DESKTOP, java_script_enabled=scripts), somebody("operator"))
    clicks = Clicks()
    clicks.on(section(page, "Admin"))
    clicks.on(page.get_by_role("link", name="New team"))
    page.get_by_label("Slug").fill("speech")
    page.get_by_label("Name").fill("Speech")
    clicks.on(page.get_by_role("button", name="Create team"))
    clicks.on(section(page, "Limits"))
    clicks.on(page.get_by_role("button", name="Edit the limit of team speech for l40s/gpu"))
    page.locator("#cell-team-speech-l40s-gpu").get_by_label("Guaranteed").fill("2")
    clicks.on(page.get_by_role("button", name="Preview changes", exact=True).last)
    clicks.on(page.get_by_role("button", name="Apply 1 change"))
    expect(page.locator("main .banner").first).to_contain_text("Limit of speech for l40s/gpu is now 2.")
    assert clicks.number == 7
