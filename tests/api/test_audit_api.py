"""The audit log over REST: permission, search, and export."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from portal.audit import chain
from portal.audit.entries import audit
from portal.core import clock
from portal.core.models import AuditEntry
from portal.tenants.models import ApiToken
from tests.support.people import client, person
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
URL = "/api/v1/audit"
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def log(other_team, project):
    """Create five entries, an hour apart: of the platform, of vision (two, one of its project), of language, of vision
    again; entries of the fixtures are older.
    """
    AuditEntry.objects.all().delete()
    said: list[tuple[str, str, str, dict[str, Any]]] = [
        ("operator", "flavor.configure", "h100", {"before": {"hidden": False}, "after": {"hidden": True}}),
        ("ada", "limit.set", "vision/h100/gpu", {"team": "vision", "before": {"nominal": 4}, "after": {"nominal": 8}}),
        ("ben", "allocation.request", "vision-train/a", {"team": "vision", "project": "vision-train"}),
        ("cem", "limit.set", "language/h100/gpu", {"team": "language"}),
        ("ada", "member.set", "vision/ben", {"team": "vision"}),
    ]
    for hour, (actor, action, target, more) in enumerate(said):
        with clock.frozen(NOON + timedelta(hours=hour)):
            audit(actor, action, target, **more)
    with clock.frozen(clock.now() - timedelta(days=2)):
        chain.seal()


@pytest.fixture
def auditor(log):
    return client(person(platform_role="auditor"), "read")


def found(api, **query):
    """Return the targets, newest first, without the tokens created for the test."""
    answer = api.get(URL, query)
    assert answer.status_code == 200, answer.content
    return [row["target"] for row in answer.json()["results"] if not row["action"].startswith(("token.", "user."))]


def test_operators_and_auditors_see_all(auditor):
    everything = ["vision/ben", "language/h100/gpu", "vision-train/a", "vision/h100/gpu", "h100"]
    assert found(auditor) == everything
    assert found(client(person(platform_role="operator"))) == everything


def test_a_lead_sees_what_concerns_the_team_and_nothing_else(log, team):
    ada = client(person(team, "lead"))
    assert found(ada, action="limit,allocation,flavor") == ["vision-train/a", "vision/h100/gpu"]
    assert found(ada, team="language") == []
    assert found(ada, q="language") == []
    assert "language" not in ada.get(f"{URL}/export").getvalue().decode()


@pytest.mark.parametrize("role", ["viewer", "member"])
@pytest.mark.parametrize("path", ["", "/export", "/heads"])
def test_who_leads_no_team_may_not(log, team, role, path):
    answer = client(person(team, role)).get(f"{URL}{path}")
    assert (answer.status_code, answer.json()["reason"]) == (403, "role_missing")


def test_who_was_made_inactive_sees_nothing(log, team):
    lead = person(team, "lead")
    api = client(lead)
    lead.is_active = False
    lead.save()
    assert api.get(URL).status_code == 401


def test_heads_are_for_the_platform(log, team):
    assert client(person(team, "lead")).get(f"{URL}/heads").status_code == 403


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"actor": "ada"}, ["vision/ben", "vision/h100/gpu"]),
        ({"actor": "cem,ben"}, ["language/h100/gpu", "vision-train/a"]),
        ({"action": "limit.set"}, ["language/h100/gpu", "vision/h100/gpu"]),
        ({"action": "limit"}, ["language/h100/gpu", "vision/h100/gpu"]),
        ({"action": "lim"}, []),
        ({"target": "h100"}, ["h100"]),
        ({"team": "vision", "actor": "ben"}, ["vision-train/a"]),
        ({"project": "vision-train"}, ["vision-train/a"]),
        ({"q": "VISION/"}, ["vision/ben", "vision/h100/gpu"]),
        ({"q": '"nominal": 8'}, ["vision/h100/gpu"]),
        ({"q": "hidden"}, ["h100"]),
        ({"q": "50%"}, []),
        ({"since": "2026-03-02T15:00:00Z", "until": "2026-03-02T16:00:00Z"}, ["language/h100/gpu"]),
        ({"since": "2026-03-02T16:00:00+01:00", "until": "2026-03-02T16:00:00Z"}, ["language/h100/gpu"]),
    ],
)
def test_it_is_found_by(auditor, query, expected):
    assert found(auditor, **query) == expected


@pytest.mark.parametrize(
    "query",
    ["since=yesterday", "until=2026-03-02T15:00:00", "q=%00", "actor=a%00", "limit=0", "cursor=x"],
)
def test_what_cannot_be_read_is_400(auditor, query):
    answer = auditor.get(f"{URL}?{query}")
    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == {query.partition("=")[0]}


def test_an_entry_says_who_what_before_after_from_where_and_its_place(auditor):
    (row,) = auditor.get(URL, {"actor": "ada", "action": "limit"}).json()["results"]
    assert row == {
        "id": row["id"],
        "at": "2026-03-02T13:00:00.000000Z",
        "actor": "ada",
        "action": "limit.set",
        "target": "vision/h100/gpu",
        "team": "vision",
        "project": "",
        "before": {"nominal": 4},
        "after": {"nominal": 8},
        "source": {},
        "request_id": "",
        "position": 2,
        "digest": row["digest"],
    }
    assert len(row["digest"]) == 64


def test_pages_follow_each_other_without_gap_or_repeat(auditor):
    url, seen = f"{URL}?limit=2", []
    while url:
        answer = auditor.get(url).json()
        seen += [row["id"] for row in answer["results"]]
        url = answer["next"]
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == AuditEntry.objects.count()


def test_a_page_needs_the_same_queries_for_few_and_for_many(auditor):
    def grow():
        for number in range(49):
            audit("ada", "test.write", f"target-{number}", team="vision")

    assert_constant(lambda: auditor.get(URL, {"limit": 200}), grow, at_most=5)


def test_the_source_names_address_token_and_request(team):
    lead = person(team, "lead")
    api = client(lead)
    made = api.post(
        "/api/v1/tokens", {"name": "ci", "scopes": ["read"]}, format="json", headers={"X-Request-ID": "r-7"}
    )
    entry = AuditEntry.objects.latest("pk")
    assert (entry.action, entry.actor, entry.request_id) == ("token.issue", lead.username, "r-7")
    prefix = ApiToken.objects.get(name="test").prefix
    assert entry.source == {"way": "api", "address": "127.0.0.1", "token": prefix}
    assert entry.after is not None
    assert entry.after["name"] == "ci"
    assert made.json()["token"] not in json.dumps(entry.after)


def test_behind_a_proxy_the_address_is_the_one_the_proxy_saw(team, settings):
    settings.TRUSTED_PROXIES = 1
    headers = {"X-Forwarded-For": "203.0.113.9, 192.0.2.7"}
    client(person(team)).post("/api/v1/tokens", {"name": "ci", "scopes": ["read"]}, format="json", headers=headers)
    assert AuditEntry.objects.latest("pk").source["address"] == "192.0.2.7"


def test_the_export_as_json_lines_says_what_the_list_says(auditor):
    answer = auditor.get(f"{URL}/export", {"team": "vision", "format": "jsonl"})
    lines = [json.loads(line) for line in answer.getvalue().decode().splitlines()]
    assert answer["Content-Type"] == "application/jsonl"
    assert lines == auditor.get(URL, {"team": "vision"}).json()["results"]


def test_the_export_as_csv_has_a_row_each_and_no_formula(auditor):
    audit("=HYPERLINK(1)", "limit.set", "-1", team="vision", after={"note": 'a, b\n"c"'})
    answer = auditor.get(f"{URL}/export", {"action": "limit", "format": "csv"})
    rows = list(csv.DictReader(io.StringIO(answer.getvalue().decode())))
    assert answer["Content-Disposition"] == 'attachment; filename="audit.csv"'
    assert [row["target"] for row in rows] == ["'-1", "language/h100/gpu", "vision/h100/gpu"]
    assert rows[0]["actor"] == "'=HYPERLINK(1)"
    assert json.loads(rows[0]["after"]) == {"note": 'a, b\n"c"'}
    assert json.loads(rows[2]["before"]) == {"nominal": 4}


def test_an_export_is_an_entry_itself(auditor):
    auditor.get(f"{URL}/export", {"team": "vision", "since": "2026-03-02T15:00:00Z"}).getvalue()
    entry = AuditEntry.objects.latest("pk")
    assert (entry.action, entry.team) == ("audit.export", "")
    assert entry.after == {"team": ["vision"], "since": "2026-03-02T15:00:00Z"}


def test_an_export_of_another_kind_is_refused_as_a_problem(auditor):
    answer = auditor.get(f"{URL}/export", {"format": "xml"})
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")


def test_a_long_export_is_read_in_batches_and_whole(auditor, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr("portal.tenants.audit_log.BATCH", 2)
    answer = auditor.get(f"{URL}/export", {"action": "limit,allocation,member,flavor"})
    with django_assert_num_queries(3):
        lines = answer.getvalue().decode().splitlines()
    assert len(lines) == 5


def test_heads_of_days_that_are_over(auditor):
    (one, two) = auditor.get(f"{URL}/heads").json()["results"]
    assert (one["count"], two["count"]) == (5, 5)
    assert one["digest"] == two["digest"] == auditor.get(URL, {"actor": "ada"}).json()["results"][0]["digest"]
    assert auditor.get(f"{URL}/heads?since=soon").json()["errors"] == {"since": ["Give a day as 2026-11-30."]}
