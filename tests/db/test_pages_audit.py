"""The page of the audit log."""

import json

import pytest

from frontend.presenters.audit import FieldChange, changes, source
from portal.audit import chain
from portal.audit.entries import audit
from portal.core.models import AuditEntry
from tests.support.pages import browser_of, text
from tests.support.people import person
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db


@pytest.fixture
def log(team, other_team):
    AuditEntry.objects.all().delete()
    audit("ada", "limit.set", "vision/l40s/gpu", team="vision", before={"nominal": 4}, after={"nominal": 8})
    audit("cem", "limit.set", "language/l40s/gpu", team="language", after={"note": "<script>alert(1)</script>"})
    chain.seal()
    audit("olga", "flavor.configure", "h100", before={"title": ""}, after={"title": "H100"})


@pytest.fixture
def auditor(log):
    return browser_of(person(platform_role="auditor"))


def test_it_shows_who_did_what_and_what_it_was_before(auditor):
    page = text(auditor.get("/audit"))
    assert "<del>4</del> <ins>8</ins>" in page
    assert "vision/l40s/gpu" in page
    assert "pending" in page, "the last entry has no place in the chain yet"
    assert "<script>alert(1)" not in page


def test_a_search_is_in_the_address_and_in_the_links_to_export(auditor):
    page = text(auditor.get("/audit?q=language&until=2126-03-01"))
    assert "language/l40s/gpu" in page
    assert "vision/l40s/gpu" not in page
    assert "/api/v1/audit/export?format=csv&amp;q=language&amp;until=2126-03-02T00%3A00%3A00%2B00%3A00" in page
    assert 'value="language"' in page


def test_the_export_that_the_page_links_to_holds_what_the_page_shows(auditor):
    answer = auditor.get("/api/v1/audit/export?format=jsonl&q=language&until=2126-03-02T00%3A00%3A00%2B00%3A00")
    assert [line["target"] for line in map(json.loads, answer.getvalue().splitlines())] == ["language/l40s/gpu"]


def test_a_lead_sees_the_team_and_finds_the_way_there(log, team):
    lead = browser_of(person(team, "lead"))
    assert 'href="/audit?team=vision"' in text(lead.get("/me"))
    page = text(lead.get("/audit"))
    assert "vision/l40s/gpu" in page
    assert "language" not in page
    assert "h100" not in page


@pytest.mark.parametrize("role", ["viewer", "member"])
def test_who_leads_no_team_is_told_who_may(log, team, role):
    browser = browser_of(person(team, role))
    answer = browser.get("/audit")
    assert answer.status_code == 403
    assert "The audit log is for leads" in text(answer)
    assert "/audit" not in text(browser.get("/me"))


def test_older_entries_are_a_link_away_and_none_is_shown_twice(auditor):
    for number in range(60):
        audit("ada", "test.write", f"target-{number:02}", team="vision")
    first = auditor.get("/audit?team=vision")
    second = auditor.get(f"/audit?team=vision&older={first.context['older']}")
    shown = [line.entry.pk for answer in (first, second) for line in answer.context["lines"]]
    assert len(shown) == len(set(shown)) == AuditEntry.objects.filter(team="vision").count()
    assert second.context["older"] is None
    assert "Newest" in text(second)


def test_the_page_needs_the_same_queries_for_one_entry_and_for_a_full_page(auditor, team):
    def grow():
        for number in range(60):
            audit("ada", "test.write", f"target-{number}", team="vision")

    assert_constant(lambda: auditor.get("/audit"), grow, at_most=5)


@pytest.mark.parametrize("query", ["since=yesterday", "until=9999-12-31", "older=x"])
def test_what_cannot_be_read_is_said_and_the_form_stays(auditor, query):
    answer = auditor.get(f"/audit?{query}")
    assert answer.status_code == 400
    assert 'role="alert"' in text(answer)
    assert 'name="actor"' in text(answer)


def test_nothing_found_offers_to_clear_the_search(auditor):
    assert "No entry matches the search." in text(auditor.get("/audit?actor=nobody"))


def test_changes_are_the_fields_that_differ():
    assert changes({"a": 1, "b": 2, "c": None}, {"a": 1, "b": 3, "c": "x", "d": {"e": []}}) == [
        FieldChange("b", "2", "3"),
        FieldChange("c", "–", "x"),
        FieldChange("d", "", '{"e": []}'),
    ]
    assert changes(None, {"role": "lead"}) == [FieldChange("role", "", "lead")]
    assert changes({"role": "lead"}, None) == [FieldChange("role", "lead", "")]
    assert changes(None, None) == []


def test_a_source_reads_as_words():
    assert source({"way": "api", "address": "192.0.2.7", "token": "1a2b"}) == "REST, token 1a2b, from 192.0.2.7"
    assert source({"way": "command", "command": "seed"}) == "command line, seed"
    assert source({}) == ""
