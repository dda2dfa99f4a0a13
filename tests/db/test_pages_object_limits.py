"""The page of a project's object limits."""

from portal.tenants.models import Project
from tests.support.pages import browser_of, text
from tests.support.people import person

PAGE = "/projects/vision-train/objects"


def test_a_member_reads_the_limits_and_finds_no_form(team, project):
    browser = browser_of(person(team, "viewer"))
    page = text(browser.get(PAGE))
    assert "ConfigMaps" in page
    assert "275 MiB" in page
    assert "Save" not in page
    assert PAGE in browser.get("/teams/vision").content.decode()
    assert browser.post(PAGE, {"jobs": "1"}).status_code == 403


def test_an_operator_sets_numbers_and_an_empty_field_is_the_default(team, project):
    operator = browser_of(person(platform_role="operator"))
    operator.post(PAGE, {"jobs": "900", "secrets": "10", "config_size_kib": "64"})
    row = Project.objects.get()
    assert (row.object_limits, row.config_size_kib) == ({"jobs": 900, "secrets": 10}, 64)
    assert "(default 500)" in text(operator.get(PAGE))
    operator.post(PAGE, {"jobs": "", "secrets": "10"})
    row.refresh_from_db()
    assert (row.object_limits, row.config_size_kib) == ({"secrets": 10}, 128)


def test_cron_jobs_are_shown_as_the_quota_has_them(team, project):
    operator = browser_of(person(platform_role="operator"))
    page = operator.get(PAGE)
    assert page.context["form"].initial["cronjobs"] == 0
    assert "0 to 1000; 0 if left empty." in text(page)
    operator.post(PAGE, {"cronjobs": "20"})
    assert "(default 0)" in text(operator.get(PAGE))
    Project.objects.update(adopted=True, object_limits={})
    assert "0 to 1000; 20 if left empty." in text(operator.get(PAGE))


def test_what_is_above_the_bound_is_refused_with_what_fits(team, project):
    answer = browser_of(person(platform_role="operator")).post(PAGE, {"secrets": "5000"})
    assert answer.status_code == 400
    assert "at most 560 secrets" in text(answer)
    assert Project.objects.get().object_limits == {}
