"""The sections that roles add to the home page: what they show, to whom, and in how many queries."""

import re
from datetime import timedelta

import pytest

from allocations.domain.phases import Phase
from allocations.models import MirrorObject, WatchState
from portal.core import clock
from portal.core.models import WorkItem
from portal.tenants import members
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Role
from quotas.catalog.models import Device, Flavor, Node, Pool, PoolUse
from quotas.catalog.sync import sync
from quotas.limits import services as limits
from quotas.metering import hold_use, proofs
from quotas.metering.hold_use import Sighting
from quotas.metering.proofs import ProofSummary
from tests.support.clusters import LOCAL
from tests.support.gpu_facts import plugin_node
from tests.support.pages import HTMX, browser_of, held, in_phase, requested, text
from tests.support.people import person
from tests.support.queued import job
from tests.support.quotas import cluster, found, l40s_nodes, mig_node
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
FULL = "Your team has used its quota."
OPERATORS = ("Fleet use", "Unavailable", "To decide", "The portal")


@pytest.fixture
def operator(fleet):
    return person(platform_role="operator")


@pytest.fixture
def lead(fleet, team):
    return person(team, "lead")


@pytest.fixture
def rival(fleet, other_team, project):
    """Return another team's project, in which somebody waits, and which has borrowed of the first team."""
    made = tenants.create_project(SYSTEM, other_team, "language-secret", "Secret")
    pool = Pool.objects.get(key="l40s/gpu")
    limits.set_limit(SYSTEM, other_team, pool, 1, borrowing=None)
    limits.set_limit(SYSTEM, project.team, pool, 4, lending=None)
    spy = person(other_team)
    held(requested(spy, made, count=2, name="borrowing"))
    in_phase(requested(spy, made, name="waiting-there"), Phase.QUEUED, "WaitingForQuota", FULL)
    return made


def test_blocked_is_explained_only_where_something_is_blocked(operator, monkeypatch):
    assert "Blocked:" not in home(operator)
    monkeypatch.setattr("frontend.presenters.home.operators.Operations.has_blocked", True)
    assert "Blocked:" in home(operator)


@pytest.mark.parametrize(
    ("role", "title"), [("operator", "Troubleshoot"), ("auditor", "Read costs"), ("", "Your first GPU")]
)
def test_home_names_the_page_of_the_docs_for_the_role(fleet, role, title):
    assert f"Docs: {title}</a>" in home(person(platform_role=role))


def test_home_of_a_lead_names_the_page_of_the_docs_for_leads(lead):
    assert "Docs: Lead a team</a>" in home(lead)


def home(user):
    return text(browser_of(user).get("/"))


def section(page, name):
    """Return the text of the section that this heading begins, with one blank between words."""
    start = page.index(f">{name}")
    return " ".join(re.sub(r"<[^>]*>", " ", page[start : page.index("</section>", start)]).split())


def navigation(page):
    start = page.index('<nav class="sections"')
    return re.findall(r">([^<]+)</a>", page[start : page.index("</nav>", start)])


def test_an_operator_sees_the_use_of_the_fleet(operator, member, project):
    held(requested(member, project, count=2))
    page = home(operator)
    assert "l40s 25 % 8 2 0 6 6 × l40s/whole" in section(page, "Fleet use")
    assert '/fleet?flavor=l40s"' in page


def test_an_operator_sees_what_waits_and_why(operator, member, project):
    in_phase(requested(member, project, name="later"), Phase.QUEUED, "WaitingForQuota", FULL)
    job("own", project.namespace)
    shown = section(home(operator), "Waiting")
    assert "Waiting 2" in shown
    assert f"later 1 × l40s/whole · {member.username} in vision-train {FULL}" in shown
    assert "own 2 × nvidia.com/gpu · Job in vision-train" in shown
    assert "vision 2" in shown


def test_an_operator_sees_nodes_and_gpus_that_cannot_be_used_and_why(operator):
    Node.objects.filter(name="l40s-0").update(ready=False)
    Node.objects.filter(name="l40s-1").update(problem="no GPU taint, so not offered")
    Device.objects.create(
        node=Node.objects.get(name="a100-0"), name="gpu-3", flavor=Flavor.objects.get(name="a100"), healthy=False
    )
    shown = section(home(operator), "Unavailable <span")
    assert "Unavailable 3" in shown
    assert "l40s-0 Not ready, or cordoned." in shown
    assert "l40s-1 no GPU taint, so not offered" in shown
    assert "a100-0 gpu-3 A taint keeps new claims away." in shown


def test_an_operator_sees_what_is_to_be_decided(operator):
    sync(LOCAL, found(*l40s_nodes(), mig_node(), plugin_node("x100-0", "NVIDIA-X100")), {})
    shown = section(home(operator), "To decide")
    assert "x100 Proposed flavor of 1 node." in shown
    assert "2 of 2 objects out of sync." in shown
    for flavor in Flavor.objects.filter(accepted=False):
        assert f"/flavors/{flavor.name}" in home(operator)


def test_an_operator_sees_offerings_without_a_price(team):
    cluster()
    shown = section(home(person(platform_role="operator")), "To decide")
    assert "l40s 1 offering without a price: what is held of it has no cost." in shown


def test_an_operator_sees_whether_the_portal_works(operator):
    WorkItem.objects.all().delete()
    WorkItem.objects.create(target="test", due_at=clock.now() - timedelta(hours=2), updated_at=clock.now())
    shown = section(home(operator), "The portal")
    assert "Work queue problem 1 due, the longest for 2 h" in shown
    assert "The other checks pass." in shown
    assert "Worker" not in shown


@pytest.mark.parametrize(
    ("missing", "failed", "is_shown"),
    [
        (0, 0, False),
        (2, 0, False),
        (1, 1, True),
    ],
)
def test_an_operator_sees_that_the_ledger_is_not_balanced(operator, monkeypatch, missing, failed, is_shown):
    summary = ProofSummary(LOCAL, clock.now(), clock.now(), missing, failed)
    monkeypatch.setattr(proofs, "summaries", lambda: [summary])
    words = "Ledger problem 1 hour not balanced, 1 hour not checked yet"
    assert (words in section(home(operator), "The portal")) == is_shown


def test_a_lead_sees_spend_and_who_waits(lead, member, project):
    held(requested(member, project, count=2), hours=2)
    in_phase(requested(member, project, name="later"), Phase.QUEUED, "WaitingForQuota", FULL)
    shown = section(home(lead), "Teams you lead")
    assert "vision 4.40 EUR 1" in shown
    assert f"later 1 × l40s/whole · {member.username} in vision-train {FULL}" in section(home(lead), "Who waits")
    assert '/teams/vision/costs"' in home(lead)


def test_a_lead_sees_who_borrows_without_the_name_of_a_team_that_is_not_visible(lead, rival):
    assert "l40s/gpu another team borrows 1 from vision." in section(home(lead), "Teams you lead")


def test_a_lead_of_both_teams_sees_both_names(lead, rival):
    members.add(SYSTEM, rival.team, lead.username, Role.LEAD)
    assert "l40s/gpu language borrows 1 from vision." in section(home(lead), "Teams you lead")


@pytest.mark.parametrize("role", ["lead", "member", "viewer"])
def test_nothing_of_another_team_is_on_the_page(role, team, rival):
    user = person(team, role)
    for page in (home(user), text(browser_of(user).get("/", headers=HTMX))):
        assert not [name for name in ("language", "secret", "waiting-there", "borrowing") if name in page]
        assert not [name for name in OPERATORS if f">{name}" in page]


def test_who_leads_no_team_sees_no_section_of_leads(fleet, member):
    page = home(member)
    assert "Teams you lead" not in page
    assert "<h1>My GPUs</h1>" in page


def test_an_auditor_sees_the_log_and_not_what_operators_decide(fleet):
    auditor = person(platform_role="auditor")
    page = home(auditor)
    assert "limit.set" in section(page, "Audit log</h2")
    assert not any(f">{name}" in page for name in OPERATORS)
    assert "You are in no team" not in page


def test_who_has_several_roles_has_all_their_sections(team, operator, member):
    members.add(SYSTEM, team, operator.username, Role.LEAD)
    page = home(operator)
    places = [
        page.index(f">{name}") for name in ("Fleet use", "Who holds what now", "My GPUs</h2>", "Team quota: vision")
    ]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("role", "platform_role", "words"),
    [
        ("viewer", "", ["My GPUs", "Allocations", "Limits", "Usage", "Costs"]),
        ("member", "", ["My GPUs", "Request", "Allocations", "Limits", "Usage", "Costs"]),
        ("lead", "", ["Home", "Request", "Allocations", "Limits", "Teams", "Usage", "Costs"]),
        ("", "operator", ["Home", "Fleet", "Request", "Allocations", "Limits", "Usage", "Costs", "Admin"]),
        ("", "auditor", ["Home", "Fleet", "Allocations", "Limits", "Usage", "Costs", "Admin"]),
        (
            "lead",
            "auditor",
            ["Home", "Fleet", "Request", "Allocations", "Limits", "Teams", "Usage", "Costs", "Admin"],
        ),
    ],
)
def test_the_navigation_follows_the_roles(fleet, team, role, platform_role, words):
    user = person(platform_role=platform_role)
    if role:
        members.add(SYSTEM, team, user.username, role)
    assert navigation(home(user)) == words


def test_a_page_below_another_is_marked_in_the_navigation(fleet, member):
    page = text(browser_of(member).get("/costs/mine"))
    assert '<a href="/costs" aria-current="true">Costs</a>' in page


@pytest.mark.parametrize("role", ["operator", "auditor"])
def test_a_poll_that_shows_nothing_new_swaps_nothing(fleet, team, role):
    user = person(platform_role=role)
    members.add(SYSTEM, team, user.username, Role.LEAD)
    browser = browser_of(user)
    with clock.frozen(clock.this_minute()):
        browser.get("/")
        (poll,) = re.findall(r'hx-get="(\?v=[0-9a-f]+&amp;held=[0-9a-f]+)"', text(browser.get("/")))
        poll = f"/{poll.replace('&amp;', '&')}"
        assert browser.get(poll, headers=HTMX).status_code == 204
        changed = browser.get(poll.replace("v=", "v=0"), headers=HTMX)
    assert changed.status_code == 200
    assert 'class="counters"' in text(changed)
    assert "<html" not in text(changed)


def counters(page):
    """Return the counters of the strip as (figure, name, note), in order."""
    start = page.index('<ul class="counters">')
    found = re.findall(r"<strong>(.*?)</strong> (.*?)<small>(.*?)</small>", page[start : page.index("</ul>", start)])
    return [tuple(found) for found in found]


def test_an_engineer_sees_what_cannot_start_what_ends_what_is_idle_and_what_waits(fleet, member, project):
    held(requested(member, project, name="idle", hours=9), hours=0.925)
    held(requested(member, project, name="ends", hours=1), hours=0.79)
    in_phase(requested(member, project, name="broken"), Phase.SUSPENDED, "StartFailed", needs_attention=True)
    in_phase(requested(member, project, name="waits"), Phase.QUEUED, "WaitingForQuota", FULL)
    page = home(member)
    assert counters(page) == [
        ("1", "Could not start", "broken"),
        ("1", "End within 20 min", "ends: 12 min left"),
        ("2", "Your holds without a pod", "for 55 min at 2.20 EUR/h"),
        ("1", "Queued", "waits: Position 1 of 1 in the team queue"),
    ]
    assert "<dt>No pod for</dt><dd>55 min</dd>" in page


def test_a_hold_with_a_pod_or_a_minute_old_is_not_counted_as_idle(fleet, member, project):
    row = held(requested(member, project, name="used"), hours=1)
    hold_use.begin(LOCAL, [row.pk], Sighting(clock.now(), 1, estimated=False))
    held(requested(member, project, name="new"), hours=0.02)
    assert ("0", "Your holds without a pod", "") in counters(home(member))


def test_who_has_no_allocation_sees_no_counters(fleet, member):
    assert 'class="counters"' not in home(member)


def test_a_lead_sees_whose_holds_have_no_pod_and_releases_one_from_the_row(lead, member, project):
    used = held(requested(member, project, name="training"), hours=5)
    hold_use.begin(LOCAL, [used.pk], Sighting(clock.now(), 1, estimated=False))
    idle = held(requested(member, project, name="notebook", count=2), hours=3)
    page = home(lead)
    assert counters(page)[0] == ("1", "Holds without a pod", member.username)
    rows = section(page, "Who holds what now")
    assert f"{member.username} notebook 2 × l40s/whole 3 h 2.20" in rows, rows
    assert rows.index("notebook") < rows.index("training 1 × l40s/whole in use 1.10")
    assert f'href="/allocations/{idle.pk}/release"' in page


def test_a_lead_sees_what_is_nearly_used_waits_and_is_borrowed(lead, member, project):
    held(requested(member, project, count=4))
    in_phase(requested(member, project, name="later"), Phase.QUEUED, "WaitingForQuota", FULL)
    found = {name: (figure, note) for figure, name, note in counters(home(lead))}
    assert found["Quotas nearly used"] == ("1", "l40s 100 %")
    assert found["Waiting in your teams"] == ("1", "")
    assert found["Borrowed"] == ("0", "")


def test_an_operator_sees_who_has_waited_for_an_hour(operator, member, project):
    with clock.frozen(clock.now() - timedelta(hours=2)):
        in_phase(requested(member, project, name="old"), Phase.QUEUED, "WaitingForQuota", FULL)
    in_phase(requested(member, project, name="new"), Phase.QUEUED, "WaitingForQuota", FULL)
    assert ("1", "Waiting over 1 h", "vision 1") in counters(home(operator))


def test_the_worst_counter_is_first(operator):
    WatchState.objects.create(cluster_id=LOCAL, kind="Workload", synced_at=clock.now())
    Node.objects.filter(name="l40s-0").update(ready=False)
    assert counters(home(operator))[0] == ("1", "Unavailable", "l40s-0")


def test_an_auditor_sees_the_month_and_what_is_missing_in_it(fleet, member, project):
    held(requested(member, project, count=2), hours=2)
    found = {name: (figure, note) for figure, name, note in counters(home(person(platform_role="auditor")))}
    assert found["Cost this month"][0] == "4.40 EUR"
    assert set(found) == {
        "Months without a bill", "Metering gaps this month", "Unpriced GPU-hours this month", "Cost this month"
    }  # fmt: skip


def test_the_strips_of_several_roles_are_joined_without_repeats(team, operator, member, project):
    members.add(SYSTEM, team, operator.username, Role.LEAD)
    held(requested(operator, project), hours=1)
    names = [name for _, name, _ in counters(home(operator))]
    assert {"Holds without a pod", "Your holds without a pod", "Unavailable"} <= set(names)
    assert len(names) == len(set(names)) == 5


def test_a_quota_is_one_line_for_each_model_in_gpus(lead, member, project):
    held(requested(member, project, count=2))
    quota = section(home(lead), "Team quota: vision")
    assert "l40s" in quota.partition("By offering")[0]
    assert "50 % 2 4 2" in quota.partition("By offering")[0], quota


def grow(lead, project):
    """Add teams that wait, borrow and hold, led by this person if there is one, unusable nodes, and proposals."""
    department = project.team.department
    pool = Pool.objects.get(key="l40s/gpu")
    for number in range(8):
        team = tenants.create_team(SYSTEM, department, f"team-{number}", f"Team {number}")
        limits.set_limit(SYSTEM, team, pool, 1, borrowing=None)
        own = tenants.create_project(SYSTEM, team, f"project-{number}", "Own")
        user = person(team)
        held(requested(user, own, name="held"))
        for name in ("one", "two"):
            in_phase(requested(user, own, name=name), Phase.QUEUED, "WaitingForQuota", FULL)
        job(f"job-{number}", own.namespace, priority=1000 * (number == 0))
        if lead:
            members.add(SYSTEM, team, lead.username, Role.LEAD)
    odd = [plugin_node(f"x{number}-0", f"NVIDIA-X{number}00") for number in range(1, 9)]
    sync(LOCAL, found(*l40s_nodes(12), mig_node(), *odd), {})
    Node.objects.filter(name__startswith="l40s").update(ready=False)


@pytest.mark.parametrize(("role", "at_most"), [("operator", 65), ("lead", 30)])
def test_home_needs_the_same_queries_for_many_teams_nodes_and_allocations(role, at_most, team, member, project, fleet):
    user = person(platform_role="operator") if role == "operator" else person(team, "lead")
    held(requested(member, project))
    in_phase(requested(member, project, name="later"), Phase.QUEUED, "WaitingForQuota", FULL)
    job("first", project.namespace)
    Node.objects.filter(name="l40s-0").update(ready=False)
    browser = browser_of(user)
    assert_constant(lambda: browser.get("/"), lambda: grow(user if role == "lead" else None, project), at_most)
    assert MirrorObject.objects.filter(kind="Workload").count() == 9


def test_a_hold_on_a_node_that_is_gone_is_the_first_of_what_is_not_usable(operator, project, member):
    held(requested(member, project, count=2))
    PoolUse.objects.filter(pool__key="l40s/gpu").update(total=0)
    page = home(operator)
    assert 'value="100" aria-label="l40s in use"' in page
    assert "2 held, 0 available" in section(page, "Fleet use")
    assert section(page, "Unavailable <span").startswith(">Unavailable 1 l40s/gpu 2 held, 0 available: a node or GPU")
