"""/costs/savings: the page says what REST says, and offers to release what the person may."""

import re
from datetime import timedelta
from fractions import Fraction
from html import unescape

import pytest
from django.urls import reverse

from frontend.presenters.stranded import stranded_lines
from portal.core import clock
from portal.core.heartbeat import beat
from quotas.catalog.models import Flavor
from quotas.costs.models import Price
from quotas.metering.stranding import StrandedGpu
from tests.support.capacity import GPUS, RESOURCES, always, hold_gpu, record
from tests.support.fleet import allocate
from tests.support.fleet import fleet as make_fleet
from tests.support.hold_pods import recorded_since
from tests.support.pages import browser_of, held, text
from tests.support.people import client, person
from tests.support.queued import GPU, job
from tests.support.quotas import attribution, used
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
PAGE = "/costs/savings"
NAMES = {"idle_hold": "Holds without pods"}


@pytest.fixture
def fleet(team, other_team):
    make_fleet(team, other_team)
    beat("worker")
    beat("watcher")
    recorded_since(0)


@pytest.fixture
def noon(fleet):
    with clock.frozen(clock.now().replace(hour=12, minute=0, second=0, microsecond=0)) as at:
        yield at


@pytest.fixture
def idle(noon, member, project):
    """Return an allocation that has been held for ten hours without a pod."""
    return held(allocate(member, project, name="train", count=2), hours=10)


def groups(user, query="window=2d"):
    answer = browser_of(user).get(f"{PAGE}?{query}")
    assert answer.status_code == 200
    return {group.kind: group for group in answer.context["groups"]}


@pytest.mark.parametrize("role", ["member", "operator"])
def test_the_page_has_the_numbers_of_rest(idle, member, noon, role):
    user = member if role == "member" else person(platform_role=role)
    used(noon - timedelta(hours=30), noon - timedelta(hours=9), 3, project="vision-old")
    shown = groups(user)
    body = client(user).get("/api/v1/costs/savings?window=2d").json()
    for total in body["totals"]:
        group = shown.pop(total["kind"])
        rows = [row for row in body["results"] if row["kind"] == total["kind"]]
        assert float(group.gpu_hours) == pytest.approx(float(total["gpu_hours"]), abs=0.005)
        if total["kind"] != "unpriced":
            assert float(group.cost.removesuffix(" EUR")) == pytest.approx(float(total["cost"]), abs=0.005)
        for line, row in zip(group.lines, rows, strict=True):
            assert float(line.gpu_hours) == pytest.approx(float(row["gpu_hours"]), abs=0.005)
            if row["cost_per_hour"]:
                assert float(line.per_hour.removesuffix(" EUR")) == pytest.approx(float(row["cost_per_hour"]), abs=0.01)
    assert shown == {}


def test_who_may_release_a_hold_is_offered_to(idle, member, team):
    address = reverse("release", args=[idle.pk])
    for user, offered in (
        *((member, True), (person(team, "lead"), True), (person(platform_role="operator"), True)),
        *((person(team), False), (person(team, "viewer"), False), (person(platform_role="auditor"), False)),
    ):
        page = text(browser_of(user).get(f"{PAGE}?window=2d"))
        assert reverse("allocation", args=[idle.pk]) in page
        assert (address in page) == offered


def test_a_hold_links_to_its_team(idle, member):
    [line] = groups(member)["idle_hold"].lines
    assert (line.subject.text, line.owner.url, line.per_hour) == ("vision-train / train", "/teams/vision", "2.20 EUR")


def test_a_job_that_uses_nothing_links_to_its_page(noon, member, project):
    uid = job("train", project.namespace, conditions={}, cluster_queue="team-vision", usage={"l40s": {GPU: 2}})
    values = attribution(member="", project=project.slug, namespace=project.namespace, unused=True)
    used(noon - timedelta(hours=6), None, 2, uid, **{**vars(values), "gpu_share": values.gpu_share})
    [line] = groups(member)["idle_hold"].lines
    assert (line.subject.text, line.subject.url, line.release) == ("vision-train / Job train", f"/jobs/{uid}", "")


def test_what_is_idle_of_a_deleted_job_leads_to_its_intervals(noon, member, project):
    row = used(noon - timedelta(hours=6), None, member="", project=project.slug, unused=True)
    [line] = groups(member)["idle_hold"].lines
    assert line.subject.text == f"vision-train / Job {row.holder_id}, deleted"
    assert browser_of(member).get(line.subject.url).status_code == 200


def test_the_person_who_holds_leads_to_what_the_person_costs(idle, member):
    [line] = groups(member)["idle_hold"].lines
    found = browser_of(member).get(line.member.url).context
    assert (line.member.text, [row.url for row in found["table"].lines]) == (
        member.username,
        [f"/costs/allocations/{idle.pk}"],
    )


@pytest.fixture
def everything(idle, noon, project):
    """Have something of each kind: a hold, a night, quota, two stranded GPUs and offerings without a price."""
    flavor = Flavor.objects.get(name="h100")
    flavor.partitionable = True
    flavor.save()
    always(flavor)
    Price.objects.filter(flavor__name="l40s").delete()
    record({**RESOURCES, **GPUS}, 0)
    hold_gpu("gpu-1-mig-1g10gb-19-0", 6, None, gpu_share=Fraction(1, 7))
    used(noon - timedelta(hours=30), noon - timedelta(hours=9), 3, project="a-project-that-is-gone")
    used(noon - timedelta(hours=30), noon - timedelta(hours=9), 3, project=project.slug)


@pytest.mark.parametrize("role", ["viewer", "member", "lead", "auditor", "operator"])
def test_whoever_sees_a_link_may_follow_it(everything, team, role):
    user = person(platform_role=role) if role in ("auditor", "operator") else person(team, role)
    browser = browser_of(user)
    shown = re.findall(r'<section class="saving">.*?</section>', text(browser.get(f"{PAGE}?window=2d")), re.DOTALL)
    links = set(re.findall(r'<a (?:class="button" )?href="([^"#]+)', "".join(shown)))
    answers = {link: browser.get(unescape(link)).status_code for link in links}
    assert any("filter=member" in link for link in links)
    assert set(answers.values()) == {200}, answers


def test_an_offering_without_a_price_links_to_the_form_for_operators_alone(everything, member):
    for user, offered in ((person(platform_role="operator"), True), (person(platform_role="auditor"), False)):
        page = text(browser_of(user).get(f"{PAGE}?window=2d"))
        assert ('href="/prices/set?of=flavor%3Al40s"' in page) == offered
    [line] = groups(member)["unpriced"].lines
    assert line.subject.url.startswith("/costs?window=2d")
    assert "offering:%22l40s/whole%22" in line.subject.url


def test_a_stranded_gpu_has_its_node_and_the_change_that_frees_it(everything):
    [line] = groups(person(platform_role="auditor"))["stranded"].lines
    [gpu] = line.stranded
    assert (gpu.name, gpu.url, gpu.gpus) == ("h100-0 / gpu-1", "/fleet/nodes/local/h100-0#gpu-1", "0.86")
    assert gpu.devices == ["gpu-1-mig-1g10gb-19-0"]
    assert gpu.change == "Offer a 1g.10gb, or move what is in use to another GPU."


def test_a_stranded_gpu_on_a_node_without_a_page_has_no_link():
    gpus = [StrandedGpu("local", "h100", f"h100-{n}", "gpu-0", "", Fraction(1, 7), ()) for n in range(2)]
    shown, _ = stranded_lines(gpus, {("local", "h100-1")})
    assert [gpu.url for gpu in shown] == ["", "/fleet/nodes/local/h100-1#gpu-0"]


def test_of_many_stranded_gpus_the_rest_is_counted():
    gpus = [StrandedGpu("local", "h100", "h100-0", f"gpu-{n}", "", Fraction(1, 7), ()) for n in range(25)]
    shown, more = stranded_lines(gpus, ())
    assert (len(shown), more) == (20, 5)


def test_other_teams_see_nothing(idle, other_team):
    assert "idle_hold" not in groups(person(other_team))
    assert "No savings found" in text(browser_of(person()).get(PAGE))


@pytest.mark.parametrize("query", ["idle_hours=0", "idle_hours=x", "idle_hours=9999", "window=never", "window=200d"])
def test_what_the_page_cannot_show_is_refused_with_a_sentence(fleet, member, query):
    answer = browser_of(member).get(f"{PAGE}?{query}")
    assert answer.status_code == 400
    assert 'role="alert"' in text(answer)


def test_the_page_takes_as_many_statements_for_many_holds(idle, member, project, noon):
    browser = browser_of(member)

    def grow(more=49):
        for _ in range(more):
            used(noon - timedelta(hours=8), None, project=project.slug)

    grow(1)
    assert_constant(lambda: browser.get(f"{PAGE}?window=2d"), grow, at_most=45)
