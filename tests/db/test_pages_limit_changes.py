"""The matrix of limits: cells changed in place, several under one preview, and the limits of a team copied."""

import pytest
from django.test import Client
from django.urls import reverse

from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import PlatformRole
from quotas.catalog.models import Pool
from quotas.limits import services as limits
from quotas.limits.models import Limit
from tests.support.pages import browser_of, held, requested, text
from tests.support.people import person
from tests.support.quotas import cluster

pytestmark = pytest.mark.django_db
POOL = "l40s/gpu"
VISION, LANGUAGE = f"team:vision:{POOL}", f"team:language:{POOL}"
URL = "/limits/changes"


@pytest.fixture
def pool(team, other_team) -> Pool:
    cluster()
    found = Pool.objects.get(key=POOL)
    limits.set_limit(SYSTEM, team, found, 6, borrowing=None, lending=1)
    limits.set_limit(SYSTEM, other_team, found, 4)
    return found


@pytest.fixture
def browser(pool) -> Client:
    return browser_of(person(platform_role=PlatformRole.OPERATOR))


def cell(key: str, nominal: str, borrowing: str = "", lending: str = "") -> dict[str, list[str] | str]:
    return {
        "open": [key],
        f"{key}-nominal": nominal,
        f"{key}-borrowing": borrowing,
        f"{key}-lending": lending,
    }


def cells(*found: dict[str, list[str] | str], **more: str) -> dict[str, list[str] | str]:
    return {name: value for one in found for name, value in one.items()} | {
        "open": [key for one in found for key in one["open"]],
        **more,
    }


def nominal(team: str) -> int:
    return Limit.objects.get(team__slug=team, user=None, pool__key=POOL).nominal


def test_each_cell_says_what_is_used_guaranteed_borrowed_and_lent(pool, team, other_team, project):
    limits.set_limit(SYSTEM, team, pool, 1, borrowing=None)
    held(requested(person(team), project, count=3))
    page = text(browser_of(person(team)).get(reverse("limits")))
    assert "<span>3</span> / <b>1</b>" in page
    assert "Used 3, guaranteed 1, borrowed 2 (no limit), lent 0 (no limit)" in page
    page = text(browser_of(person(other_team)).get(reverse("limits")))
    assert "lent 2 (no limit)" in page


def test_use_that_nobody_lends_is_marked(pool, team, other_team, project, browser):
    limits.set_limit(SYSTEM, team, pool, 3)
    held(requested(person(team), project, count=3))
    limits.set_limit(SYSTEM, team, pool, 1)
    limits.set_limit(SYSTEM, other_team, pool, 0)
    assert "2 more than it can get" in text(browser.get(reverse("limits")))


def test_a_script_finds_the_limits_of_a_closed_cell(browser):
    page = text(browser.get(reverse("limits")))
    assert 'data-nominal="6" data-borrowing="" data-lending="1"' in page
    assert '<template id="cell-form">' in page


def test_without_scripts_a_cell_opens_beside_what_was_typed_before(browser):
    page = text(browser.post(URL, {**cell(VISION, "5"), "edit": LANGUAGE}))
    assert f'name="{VISION}-nominal" value="5"' in page
    assert f'name="{LANGUAGE}-nominal" value="4"' in page
    page = text(browser.post(URL, cells(cell(VISION, "5"), cell(LANGUAGE, "3"), close=VISION)))
    assert f'name="{VISION}-nominal"' not in page
    assert f'name="{LANGUAGE}-nominal" value="3"' in page


def test_several_cells_are_previewed_together_and_then_applied(browser, team, pool):
    wanted = cells(cell(VISION, "5"), cell(LANGUAGE, "3", "2", "1"))
    answer = browser.post(URL, {**wanted, "preview": "1"})
    page = text(answer)
    assert "Preview of 2 changes" in page
    assert "Guaranteed <strong>6 → 5</strong><br>Lending limit <strong>1 → unlimited</strong>" in page
    assert "8 units available, 10 allocated to teams now, 8 after the change." in page
    assert (nominal("vision"), nominal("language")) == (6, 4)
    done = browser.post(URL, {**wanted, "confirm": answer.context["preview"].token}, follow=True)
    assert "2 limits changed." in text(done)
    changed = Limit.objects.get(team__slug="language", pool=pool)
    assert (changed.nominal, changed.borrowing, changed.lending) == (3, 2, 1)
    assert nominal("vision") == 5


def test_what_was_previewed_at_five_and_changed_to_zero_is_previewed_again(browser):
    first = browser.post(URL, {**cell(VISION, "5"), "preview": "1"})
    second = browser.post(URL, {**cell(VISION, "0"), "confirm": first.context["preview"].token})
    assert "The values changed after the preview, so nothing was applied." in text(second)
    assert nominal("vision") == 6
    done = browser.post(URL, {**cell(VISION, "0"), "confirm": second.context["preview"].token})
    assert done.headers["Location"] == reverse("limits")
    assert nominal("vision") == 0


def test_a_second_click_applies_nothing_more(browser, team, pool):
    first = browser.post(URL, {**cell(VISION, "5"), "preview": "1"})
    sent = {**cell(VISION, "5"), "confirm": first.context["preview"].token, "key": first.context["key"]}
    assert browser.post(URL, sent).status_code == 302
    limits.set_limit(SYSTEM, team, pool, 6)
    again = browser.post(URL, sent)
    assert again.status_code == 302
    assert nominal("vision") == 6


def test_an_open_cell_with_the_same_numbers_is_no_change(browser):
    page = text(browser.post(URL, {**cell(VISION, "6", "", "1"), "preview": "1"}))
    assert "No value is different." in page


def test_no_quota_is_another_state_than_a_quota_of_0(browser, team):
    tenants.create_team(SYSTEM, team.department, "speech", "Speech")
    key = f"team:speech:{POOL}"
    untouched = {"open": [key], f"{key}-nominal": "", f"{key}-borrowing": "0", f"{key}-lending": ""}
    assert "No quota" in text(browser.get(reverse("limits")))
    assert f'name="{key}-nominal" value=' not in text(browser.get(URL, {"edit": key}))
    assert "No value is different." in text(browser.post(URL, {**untouched, "preview": "1"}))
    wanted = {**untouched, f"{key}-nominal": "0"}
    preview = browser.post(URL, {**wanted, "preview": "1"})
    assert "none → 0" in text(preview)
    browser.post(URL, {**wanted, "confirm": preview.context["preview"].token})
    assert "<span>0</span> / <b>0</b>" in text(browser.get(reverse("limits")))


def test_a_quota_is_removed_under_the_preview_of_other_changes(browser, team, other_team, pool):
    wanted = cells(cell(VISION, ""), cell(LANGUAGE, "3"))
    preview = browser.post(URL, {**wanted, "preview": "1"})
    assert "Guaranteed <strong>6 → none</strong>" in text(preview)
    assert "10 allocated to teams now, 3 after the change." in text(preview)
    assert "Changes in Kueue" in text(preview)
    browser.post(URL, {**wanted, "confirm": preview.context["preview"].token})
    assert not Limit.objects.filter(team=team, pool=pool).exists()
    assert nominal("language") == 3


def test_a_removal_that_was_previewed_does_not_apply_to_a_quota_of_0(browser):
    removal = browser.post(URL, {**cell(VISION, ""), "preview": "1"})
    answer = browser.post(URL, {**cell(VISION, "0"), "confirm": removal.context["preview"].token})
    assert "The values changed after the preview, so nothing was applied." in text(answer)
    assert nominal("vision") == 6


def test_a_wrong_number_is_said_at_its_cell(browser):
    answer = browser.post(URL, cells(cell(VISION, "-1"), cell(LANGUAGE, "3"), preview="1"))
    assert answer.status_code == 400
    assert "Guaranteed of team vision for l40s/gpu</a>: Ensure this value is greater than or equal to 0." in text(
        answer
    )


def test_a_department_has_no_use_of_its_own_and_a_guaranteed_quota_alone(browser, pool):
    department = f"department:research:{POOL}"
    page = text(browser.get(URL, {"edit": department}))
    assert f'name="{department}-nominal"' in page
    assert f'name="{department}-borrowing"' not in page
    sent = {"open": [department], f"{department}-nominal": "2"}
    preview = browser.post(URL, {**sent, "preview": "1"})
    assert browser.post(URL, {**sent, "confirm": preview.context["preview"].token}).status_code == 302
    assert Limit.objects.get(department__slug="research", pool=pool).nominal == 2


def test_the_limits_of_a_team_are_filled_in_for_a_new_one(browser, team, pool):
    tenants.create_team(SYSTEM, team.department, "speech", "Speech")
    page = text(browser.get(URL, {"copy_from": "vision", "copy_to": "speech"}))
    assert "1 limit of vision filled in for speech. Nothing is changed yet: preview the changes." in page
    key = f"team:speech:{POOL}"
    for name, value in (("nominal", "6"), ("lending", "1")):
        assert f'name="{key}-{name}" value="{value}"' in page
    assert not Limit.objects.filter(team__slug="speech").exists()
    page = text(browser.get(URL, {"copy_from": "vision", "copy_to": "vision"}))
    assert "Nothing to copy: vision has the limits of vision already." in page


@pytest.mark.parametrize(
    "query",
    [{"edit": "team:none:l40s/gpu"}, {"edit": "team:vision:none/gpu"}, {"copy_from": "vision", "copy_to": "none"}],
)
def test_a_cell_that_is_not_there_is_not_found(browser, query):
    assert browser.get(URL, query).status_code == 404


@pytest.mark.parametrize("role", ["viewer", "member", "lead"])
def test_only_operators_change_the_quotas_of_teams(pool, team, role):
    browser = browser_of(person(team, role))
    assert browser.get(URL).status_code == 403
    assert browser.post(URL, {**cell(VISION, "9"), "preview": "1"}).status_code == 403
    assert nominal("vision") == 6


def test_an_auditor_sees_the_matrix_and_changes_nothing(pool):
    browser = browser_of(person(platform_role=PlatformRole.AUDITOR))
    page = text(browser.get(reverse("limits")))
    assert "8 units available, 10 allocated to teams" in page
    assert URL not in page
    assert browser.get(URL).status_code == 403
