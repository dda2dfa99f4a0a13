"""A member follows the queue to a Job, an auditor searches the log, and these pages fit on a phone."""

import re

import pytest
from playwright.sync_api import expect

from portal.audit.entries import audit
from tests.support.browser import PHONE, sign_in, with_password
from tests.support.people import person
from tests.support.queued import job


def test_a_member_sees_from_the_queue_why_a_job_waits(open_page, member, project):
    job("train", project.namespace)
    page = sign_in(open_page(), member)
    page.goto("/queues/vision")
    expect(page.get_by_role("row", name="train")).to_contain_text("Release what the team no longer needs")
    page.get_by_role("link", name="train", exact=True).click()
    expect(page.get_by_role("heading", name="train")).to_be_visible()
    expect(page.locator("main")).to_contain_text("Position 1 of 1")


def test_a_link_that_is_pressed_is_followed_though_the_page_has_news_meanwhile(open_page, member, project):
    job("train", project.namespace)
    page = sign_in(open_page(), member)
    page.goto("/queues/vision")
    link = page.get_by_role("link", name="train", exact=True)
    link.hover()
    page.mouse.down()
    job("another", project.namespace)
    with page.expect_response(re.compile("/queues/vision")) as news:
        page.evaluate("document.body.dispatchEvent(new CustomEvent('portal:tick'))")
    assert news.value.status == 200
    news.value.finished()
    page.evaluate("new Promise(requestAnimationFrame)")
    page.mouse.up()
    page.wait_for_url("/jobs/*")


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_an_auditor_searches_the_log_and_takes_what_was_found_along(open_page, team, scripts):
    audit("ada", "limit.set", "vision/l40s/gpu", team="vision", before={"nominal": 4}, after={"nominal": 8})
    audit("cem", "team.create", "language")
    page = sign_in(open_page(java_script_enabled=scripts), with_password(person(platform_role="auditor")))
    page.goto("/audit")
    page.get_by_label("Actor", exact=True).fill("ada")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text("limit.set")
    exported = page.request.get(str(page.get_by_role("link", name="CSV").get_attribute("href"))).text()
    assert "ada" in exported
    assert "cem" not in exported
    page.get_by_role("link", name="Clear search").click()
    expect(page.get_by_role("row", name="cem")).to_contain_text("team.create")


@pytest.mark.parametrize("width", [640, 680, 720, 800, 960])
def test_none_of_these_pages_is_wider_than_its_window_at_200_per_cent(open_page, team, project, width):
    audit("operator", "kueue.object_limits.change", "vision-train/l40s/gpu", team="vision", after={"note": "n" * 200})
    audit("system", "allocation.request", "vision-train/a-name-of-a-training", team="vision", after={"id": "8f852a01"})
    page = sign_in(open_page(viewport={"width": width, "height": 800}), with_password(person(platform_role="operator")))
    for path in ("/", "/queues/vision", "/audit", "/limits", "/limits/set", "/kueue", "/teams/vision", "/tenants"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


def test_none_of_these_pages_is_wider_than_a_phone(open_page, team, project):
    waits = job("j" * 60, project.namespace)
    audit("a" * 60, "limit.set", "t" * 200, team="vision", after={"note": "n" * 200})
    page = sign_in(open_page(viewport=PHONE), with_password(person(platform_role="operator")))
    for path in ("/queues/vision", f"/jobs/{waits}", "/audit", "/limits", "/limits/set", "/kueue"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
