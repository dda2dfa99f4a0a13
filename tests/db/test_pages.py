"""The pages as a person meets them: what they show, to whom, and in how many queries."""

import hashlib
import tomllib
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.conf import settings

from allocations.domain.phases import Phase
from portal.core import clock, heartbeat
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from tests.support.pages import HTMX, browser_of, ended, held, in_phase, requested, text
from tests.support.people import person
from tests.support.queued import job
from tests.support.quotas import used
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db


def test_who_is_not_signed_in_is_led_to_sign_in_and_back(client):
    response = client.get("/allocations?mine=1")
    assert response.status_code == 302
    assert response["Location"] == "/login?next=/allocations%3Fmine%3D1"


def test_a_poll_after_the_session_ended_leaves_the_page_instead_of_swapping_a_form_into_it(client):
    response = client.get("/", headers=HTMX | {"HX-Current-URL": "http://testserver/"})
    assert response["HX-Redirect"] == "/login?next=/"


def test_who_opens_pages_too_fast_is_told_how_long_to_wait_and_nobody_else_is(browser, team, settings, monkeypatch):
    settings.PAGE_REQUESTS_PER_MINUTE = 2
    monkeypatch.setattr("portal.http.counters.time.time", lambda: 1_000_000_007.0)  # no minute ends meanwhile
    monkeypatch.setattr("portal.http.counters._paused_until", 0.0)  # whatever Redis did in earlier tests
    assert [browser.get("/").status_code for _ in range(3)] == [200, 200, 429]
    answer = browser.get("/allocations", headers=HTMX)
    assert answer.status_code == 429
    assert 0 < int(answer["Retry-After"]) <= 60
    assert "At most 2 pages a minute." in text(answer)
    assert browser_of(person(team)).get("/").status_code == 200


def test_sign_in_works_and_says_what_is_wrong(client, member):
    tenants.set_password(SYSTEM, member, "a long enough secret")
    wrong = client.post("/login", {"username": member.username, "password": "wrong"})
    assert "Please enter a correct username and password" in text(wrong)
    right = client.post("/login", {"username": member.username, "password": "a long enough secret"})
    assert right["Location"] == "/"


def test_home_without_anything_offers_the_request(fleet, browser):
    page = text(browser.get("/"))
    assert "You have no active or queued GPUs." in page
    assert "Team quota: vision" in page


def test_home_of_who_is_in_no_team_says_so(fleet):
    assert "You are in no team" in text(browser_of(person()).get("/"))


def test_home_shows_what_is_held_with_its_cost_and_what_waits_with_its_place(fleet, member, project, browser):
    with clock.frozen(clock.this_minute()):
        held(requested(member, project, count=2, name="training"), hours=2)
        in_phase(requested(member, project, count=4, name="later"), Phase.QUEUED, "pending", "No quota is left.")
        page = text(browser.get("/"))
    assert "Active" in page
    assert "4.40 EUR" in page
    assert "2.20 EUR per hour" in page
    assert "6 h left" in page
    assert "Position 1 of 1 in the team queue." in page


def test_the_list_needs_the_same_queries_for_one_allocation_and_for_a_full_page(fleet, member, project, browser):
    held(requested(member, project))

    def grow():
        for number in range(26):
            held(requested(member, project, name=f"more-{number}"))

    assert_constant(lambda: browser.get("/allocations"), grow, at_most=10)
    assert text(browser.get("/allocations")).count('name="id"') == 27


def test_a_poll_that_finds_nothing_new_costs_few_queries_and_swaps_nothing(
    fleet, member, project, browser, django_assert_max_num_queries
):
    row = held(requested(member, project, name="training"))
    now = clock.now()
    with clock.frozen(now):
        version = browser.get(f"/allocations/{row.pk}").context["version"]
        with django_assert_max_num_queries(3):
            unchanged = browser.get(f"/allocations/{row.pk}?v={version}", headers=HTMX)
        assert unchanged.status_code == 204
        ended(row)
        changed = browser.get(f"/allocations/{row.pk}?v={version}&phase=active&usable=1", headers=HTMX)
    page = text(changed)
    assert changed.status_code == 200
    assert "<title>Released: training · GPU portal</title>" in page
    assert 'id="announce" hx-swap-oob' in page
    assert 'id="use" hx-swap-oob' in page
    assert "kubectl" not in page
    assert "portal:tick" not in page, "what has ended is not asked for again"


def test_what_was_said_of_a_request_goes_once_its_phase_changes(fleet, member, project, browser):
    row = requested(member, project)
    gone = '<div id="messages" hx-swap-oob="innerHTML"></div>'
    poll = f"/allocations/{row.pk}?phase=queued&usable=0"
    assert gone not in text(browser.get(poll, headers=HTMX))
    held(row)
    assert gone in text(browser.get(poll, headers=HTMX))


def test_a_poll_brings_new_costs_each_minute(fleet, member, project, browser):
    row = held(requested(member, project))
    with clock.frozen(clock.now()) as now:
        version = browser.get(f"/allocations/{row.pk}").context["version"]
    with clock.frozen(now + timedelta(minutes=1)):
        assert browser.get(f"/allocations/{row.pk}?v={version}", headers=HTMX).status_code == 200


@pytest.mark.parametrize("aggregate", ["project", "member", "offering", "node", "allocation"])
def test_costs_add_up_by_whatever_they_are_summed(fleet, member, project, browser, aggregate):
    now = clock.now().replace(hour=12)
    with clock.frozen(now):
        for number in range(3):
            held(requested(member, project, name=f"run-{number}"), hours=1 / 3)
        table = browser.get(f"/costs?window=today&aggregate={aggregate}").context["table"]
    assert str(table.total) == "1.10"
    assert sum(line.cost for line in table.lines) == table.total


def test_costs_by_allocation_name_jobs(fleet, project, browser):
    now = clock.now().replace(hour=12)
    known, deleted = job("train", project.namespace), uuid4()
    for uid in (known, deleted):
        used(now - timedelta(hours=1), now, allocation=uid)
    with clock.frozen(now):
        page = text(browser.get("/costs?window=today&aggregate=allocation"))
    assert f'<a href="/costs/allocations/{known}">vision-train / Job train</a>' in page
    assert f"Job {deleted}, deleted" in page


def test_costs_of_other_teams_are_not_shown(fleet, member, project, other_team):
    held(requested(member, project), hours=1)
    assert "Nothing was held in this period" in text(browser_of(person(other_team)).get("/costs"))
    assert "vision-train" in text(browser_of(person(platform_role="auditor")).get("/costs"))


def test_costs_of_no_window_say_which_windows_there_are(fleet, browser):
    response = browser.get("/costs?window=sometimes")
    assert response.status_code == 400
    assert "lastmonth" in text(response)


def test_a_new_tokens_secret_is_shown_once(fleet, member, browser):
    made = browser.post("/me", {"name": "pipeline", "scopes": ["read"], "lives": "30"})
    assert made.status_code == 201
    assert "gpup_" in made.context["secret"]
    assert made["Cache-Control"].find("no-store") >= 0
    token = member.tokens.get()
    after = text(browser.get("/me"))
    assert "pipeline" in after
    assert made.context["secret"] not in after
    assert "Revoke pipeline?" in text(browser.get(f"/me/tokens/{token.pk}/revoke"))
    browser.post(f"/me/tokens/{token.pk}/revoke")
    token.refresh_from_db()
    assert token.revoked_at is not None


def test_another_persons_token_is_not_found(fleet, member, browser):
    token, _ = tenants.issue_token(SYSTEM, person(), "theirs", ["read"], timedelta(days=1))
    assert browser.get(f"/me/tokens/{token.pk}/revoke").status_code == 404
    assert browser.post(f"/me/tokens/{token.pk}/revoke").status_code == 404


def test_the_chosen_theme_is_rendered_by_the_server(client):
    assert "data-theme" not in text(client.get("/login"))
    chosen = client.post("/theme", {"theme": "dark", "next": "/login"})
    assert chosen["Location"] == "/login"
    assert 'data-theme="dark"' in text(client.get("/login"))
    assert client.post("/theme", {"theme": "auto", "next": "https://elsewhere.example/"})["Location"] == "/"


def test_a_page_says_when_the_portal_itself_is_behind(fleet, browser):
    assert "The portal is delayed" not in text(browser.get("/"))
    with clock.frozen(clock.now() + timedelta(seconds=settings.STALE_S + 5)):
        page = browser.get("/")
        assert "Its worker and watcher did not report for a while." in text(page)
        poll = f"/banners?v={page.context['banners'].version}"
        assert browser.get(poll, headers=HTMX).status_code == 204
        heartbeat.beat("worker")
        assert "Its watcher did not report for a while." in text(browser.get(poll, headers=HTMX))
        heartbeat.beat("watcher")
        part = text(browser.get(poll, headers=HTMX))
        assert 'id="banners"' in part
        assert "did not report" not in part
        assert browser.get("/banners")["Location"] == "/"


def test_answers_that_name_no_icon_have_the_portals(client):
    assert client.get("/favicon.ico").headers["Location"].endswith(".svg")


def test_what_does_not_exist_is_a_page_with_ways_on(fleet, browser):
    response = browser.get("/nowhere")
    assert response.status_code == 404
    assert "Your GPUs" in text(response)


def test_no_page_carries_inline_script_or_style(fleet, member, project, browser):
    row = held(requested(member, project))
    for path in ("/", "/request", "/allocations", f"/allocations/{row.pk}", "/costs", "/me", "/nowhere"):
        response = browser.get(path)
        page = text(response)
        assert "<style" not in page
        assert " style=" not in page
        assert page.count("<script") == page.count("<script src="), path
        assert "script-src 'self'" in response["Content-Security-Policy"]


def test_vendored_files_are_those_of_the_lock():
    vendor = Path(settings.BASE_DIR) / "frontend/static/vendor"
    packages = tomllib.loads((vendor / "vendor.lock").read_text())["package"]
    for package in packages:
        folder = vendor / package["folder"]
        found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
        assert found == package["sha256"]
    assert {path.name for path in vendor.iterdir()} == {"vendor.lock", *(p["folder"] for p in packages)}
