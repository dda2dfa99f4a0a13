"""The pages of limits: what a member, a lead and an operator see and set."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.urls import reverse

from allocations.models import MirrorObject
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import PlatformRole
from quotas.catalog.models import Pool
from quotas.limits import selectors
from quotas.limits import services as limits
from quotas.limits.models import Limit
from tests.support.claim_rows import h100_node
from tests.support.clusters import LOCAL
from tests.support.pages import browser_of, held, requested, text
from tests.support.people import person
from tests.support.quotas import cluster
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
POOL = "l40s/gpu"


@pytest.fixture
def pool(team, other_team) -> Pool:
    cluster()
    found = Pool.objects.get(key=POOL)
    limits.set_limit(SYSTEM, team, found, 6, borrowing=None, lending=1)
    limits.set_limit(SYSTEM, other_team, found, 4)
    return found


def test_an_operator_sees_every_team_beside_the_fleet_and_what_is_promised_too_often(pool):
    page = text(browser_of(person(platform_role=PlatformRole.OPERATOR)).get(reverse("limits")))
    assert "8 units available, 10 allocated to teams" in page
    assert "2 more than available" in page
    assert 'Edit the limit of <span class="name">team vision for l40s/gpu</span>' in page
    assert 'Edit the limit of <span class="name">team language for l40s/gpu</span>' in page


def test_a_member_sees_the_own_team_only_and_sets_nothing(pool, team):
    browser = browser_of(person(team))
    page = text(browser.get(reverse("limits")))
    assert "no limit" in page
    assert "language" not in page
    assert reverse("limit") not in page
    assert reverse("change-limits") not in page
    answer = browser.post(reverse("limit"), {"holder": "team:vision", "scope": "all", "nominal": "1", "confirm": "1"})
    assert answer.status_code == 403


def test_a_change_is_shown_before_it_is_done(pool, team):
    browser = browser_of(person(platform_role=PlatformRole.OPERATOR))
    wanted = {"holder": "team:vision", "scope": f"pool:{POOL}", "nominal": "2", "borrowing": "0", "lending": ""}
    preview = browser.post(reverse("limit"), {**wanted, "preview": "1"})
    assert "Changes in Kueue" in text(preview)
    assert Limit.objects.get(team=team, pool=pool).nominal == 6
    done = browser.post(reverse("limit"), {**wanted, "confirm": preview.context["digest"]})
    assert done.headers["Location"] == reverse("limits")
    changed = Limit.objects.get(team=team, pool=pool)
    assert (changed.nominal, changed.borrowing, changed.lending) == (2, 0, None)


def test_what_was_changed_after_its_preview_is_previewed_again_and_not_applied(pool, team):
    browser = browser_of(person(platform_role=PlatformRole.OPERATOR))
    values = {"holder": "team:vision", "scope": f"pool:{POOL}", "nominal": "5", "borrowing": "0", "lending": ""}
    first = browser.post(reverse("limit"), {**values, "preview": "1"})
    changed = {**values, "nominal": "0"}
    second = browser.post(reverse("limit"), {**changed, "confirm": first.context["digest"]})
    assert "The values changed after the preview, so nothing was applied." in text(second)
    assert second.context["effect"].after.nominal == 0
    assert Limit.objects.get(team=team, pool=pool).nominal == 6
    assert browser.post(reverse("limit"), {**changed, "confirm": second.context["digest"]}).status_code == 302
    assert Limit.objects.get(team=team, pool=pool).nominal == 0


def test_a_lead_gives_a_member_a_limit(pool, team):
    ada, lead = person(team), person(team, "lead")
    wanted = {"holder": f"member:vision/{ada.username}", "scope": "all", "nominal": "1", "borrowing": "0"}
    preview = browser_of(lead).post(reverse("limit"), {**wanted, "preview": "1"})
    sent = {**wanted, "confirm": preview.context["digest"]}
    assert browser_of(lead).post(reverse("limit"), sent).status_code == 302
    page = text(browser_of(ada).get(reverse("limits")))
    assert f"member vision/{ada.username}" in page


def test_the_same_use_in_two_figures_is_explained(team, project):
    ada = person(team, "lead")
    h100_node(team)
    limits.set_limit(SYSTEM, project, None, 4)
    held(requested(ada, project, "h100/mig-3g.40gb", 2))
    held(requested(ada, project, "h100/mig-2g.20gb", 3))
    page = text(browser_of(ada).get(reverse("limits")))
    assert "<span>1.75</span> / <b>" in page
    assert "Kueue counts compute and memory of a GPU separately. “Used” is the larger of the two." in page
    assert '<td data-label="Used" class="number">1.86</td>' in page
    assert "Limits in GPUs add up the share of a GPU that each slice costs." in page


def test_the_page_takes_as_many_queries_for_many_teams(pool, team):
    browser = browser_of(person(platform_role=PlatformRole.OPERATOR))

    def grow():
        for number in range(49):
            more = tenants.create_team(SYSTEM, team.department, f"team-{number}", "More")
            limits.set_limit(SYSTEM, more, pool, number)
            limits.set_limit(SYSTEM, tenants.create_project(SYSTEM, more, f"project-{number}", "More"), None, number)

    assert_constant(lambda: browser.get(reverse("limits")), grow, at_most=25)


def test_kueue_is_shown_beside_what_it_should_be(pool, team):
    wanted = {one["metadata"]["name"]: one for one in selectors.manifests(LOCAL)}
    for name in ("dept-research", "team-vision", "team-language"):
        facts = {"spec": {**wanted[name]["spec"], "stopPolicy": "None"}}
        if name == "team-vision":
            facts["spec"] = {**facts["spec"], "queueingStrategy": "StrictFIFO"}
        mirrored(wanted[name]["kind"], name, facts)
    page = text(browser_of(person(platform_role=PlatformRole.AUDITOR)).get(reverse("kueue")))
    assert "1 of 3 out of sync" in page
    assert "<code>queueingStrategy</code> is StrictFIFO and should be BestEffortFIFO" in page
    assert browser_of(person(team, "lead")).get(reverse("kueue")).status_code == 403


def test_kueue_of_which_nothing_was_read_yet_is_not_called_in_sync(db):
    assert "in sync" not in text(browser_of(person(platform_role=PlatformRole.OPERATOR)).get(reverse("kueue")))


def mirrored(kind: str, name: str, facts: dict) -> None:
    MirrorObject.objects.create(
        cluster_id=LOCAL, kind=kind, name=name, uid=name, resource_version=1, facts=facts, seen_at=datetime.now(UTC)
    )


def test_a_lead_changes_and_takes_away_what_the_portal_counts(pool, team, project):
    row = limits.set_limit(SYSTEM, project, None, 3)
    fleet_wide = limits.set_limit(SYSTEM, team, None, 9)
    browser = browser_of(person(team, "lead"))
    page = text(browser.get(reverse("limits")))
    assert f"{reverse('limit')}?holder=project%3Avision-train&amp;scope=all&amp;nominal=3" in page
    assert reverse("remove-limit", args=[row.pk]) in page
    assert reverse("remove-limit", args=[fleet_wide.pk]) not in page
    assert browser.post(reverse("remove-limit", args=[fleet_wide.pk])).status_code == 403
    assert "Remove the limit of vision-train?" in text(browser.get(reverse("remove-limit", args=[row.pk])))
    assert Limit.objects.filter(pk=row.pk).exists()
    removed = browser.post(reverse("remove-limit", args=[row.pk]), follow=True)
    assert "Limit of vision-train for all removed." in text(removed)
    assert not Limit.objects.filter(pk=row.pk).exists()


def test_a_limit_of_another_team_is_not_there(pool, other_team):
    row = limits.set_limit(SYSTEM, other_team, None, 3)
    stranger = browser_of(person(tenants.create_team(SYSTEM, other_team.department, "speech", "Speech"), "lead"))
    assert stranger.get(reverse("remove-limit", args=[row.pk])).status_code == 404


def test_who_competes_how_is_shown(pool, team):
    limits.set_policy(SYSTEM, team, {"weight": Decimal("2.5"), "reclaim": "LowerPriority"})
    page = text(browser_of(person(team)).get(reverse("limits")))
    assert "2.5" in page
    assert "<code>LowerPriority</code>" in page
    assert "admin" not in page
