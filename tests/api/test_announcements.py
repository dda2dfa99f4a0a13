"""Announcements: what operators tell everybody, over REST, at the head of each page, and on their own page."""

from datetime import timedelta

import pytest

from portal.core import clock
from portal.core.errors import Forbidden, Invalid
from portal.core.models import Announcement, AuditEntry
from portal.tenants import announcements
from portal.tenants.actors import SYSTEM
from tests.support.pages import HTMX, browser_of, text
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
URL = "/api/v1/announcements"
MAINTENANCE = "Maintenance on Saturday from 20:00: the H100 pool is drained."
HOUR = timedelta(hours=1)


@pytest.fixture
def operator(db):
    return person(platform_role="operator")


def announced(**values):
    return announcements.save(SYSTEM, Announcement(), {"text": MAINTENANCE, "severity": "warning"} | values)


def texts(api, query=""):
    return [one["text"] for one in api.get(f"{URL}{query}").json()["results"]]


def test_an_operator_announces_and_everybody_signed_in_reads_it(operator):
    answer = client(operator).post(URL, {"text": MAINTENANCE}, format="json")
    made = answer.json()
    assert answer.status_code == 201
    given = {"text": MAINTENANCE, "severity": "info", "starts_at": None, "ends_at": None}
    assert made == given | {name: made[name] for name in ("id", "created_at")} | {"created_by": operator.username}
    assert client(person()).get(f"{URL}/{made['id']}").json() == made
    assert texts(client(person())) == [MAINTENANCE]


def test_an_announcement_is_shown_from_its_start_until_before_its_end():
    now = clock.now()
    announced(starts_at=now, ends_at=now + HOUR)
    found = []
    for at in (now - HOUR / 3600, now, now + HOUR - HOUR / 3600, now + HOUR):
        with clock.frozen(at):
            found.append(announcements.shown().exists())
    assert found == [False, True, True, False]


def test_one_that_is_not_shown_now_is_there_for_platform_staff_alone(operator):
    later = announced(starts_at=clock.now() + HOUR)
    auditor, member = client(person(platform_role="auditor")), client(person())
    assert (texts(auditor), texts(auditor, "?all=true")) == ([], [MAINTENANCE])
    assert auditor.get(f"{URL}/{later.pk}").status_code == 200
    assert (texts(member), member.get(f"{URL}?all=true").status_code) == ([], 403)
    assert [ask(f"{URL}/{later.pk}").status_code for ask in (member.get, member.delete)] == [404, 404]


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"text": " "}, "text"),
        ({"text": "x" * 301}, "text"),
        ({"text": "one line\nand another"}, "text"),
        ({"severity": "loud"}, "severity"),
        ({"starts_at": "2026-12-01T20:00:00Z", "ends_at": "2026-12-01T20:00:00Z"}, "ends_at"),
        ({"starts_at": "tomorrow"}, "starts_at"),
    ],
)
def test_what_is_wrong_is_told_at_its_field(operator, values, field):
    answer = client(operator).post(URL, {"text": MAINTENANCE} | values, format="json")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])
    assert not Announcement.objects.exists()


def test_a_change_keeps_the_interval_valid_and_its_author():
    row = announced(starts_at=clock.now())
    with pytest.raises(Invalid, match="after the start"):
        announcements.save(SYSTEM, row, {"ends_at": row.starts_at})
    row.refresh_from_db()
    changed = announcements.save(person(platform_role="operator"), row, {"text": "Done."})
    assert (changed.text, changed.ends_at, changed.created_by) == ("Done.", None, "system")


@pytest.mark.parametrize("role", ["", "auditor"])
def test_others_than_operators_are_refused_before_what_they_ask_is_read(role):
    row, by = announced(), person(platform_role=role)
    with pytest.raises(Forbidden):
        announcements.save(by, row, {"severity": "loud"})
    with pytest.raises(Forbidden):
        announcements.delete(by, row)
    with pytest.raises(Forbidden):
        announcements.managed(by, 0)


def test_changes_over_rest_need_the_version_and_are_in_the_audit_log(operator):
    api, row = client(operator), announced()
    address = f"{URL}/{row.pk}"
    tag = api.get(address)["ETag"]
    statuses = [
        api.patch(address, {"text": "Done."}, format="json", headers=headers).status_code
        for headers in ({}, {"If-Match": tag}, {"If-Match": tag})
    ]
    assert statuses == [428, 200, 412]
    assert api.delete(address).status_code == 204
    entries = AuditEntry.objects.filter(actor=operator.username, action__startswith="announcement.").order_by("pk")
    assert [(one.action, one.target, one.before and one.before["text"]) for one in entries] == [
        ("announcement.set", str(row.pk), MAINTENANCE),
        ("announcement.delete", str(row.pk), "Done."),
    ]


def test_each_page_shows_what_is_shown_now_warnings_first_and_polls_it():
    browser = browser_of(person())
    before = browser.get("/me")
    announced(text="A <b>word</b>.", severity="info")
    announced()
    announced(text="Over.", ends_at=clock.now())
    shown = text(browser.get("/me"))
    assert shown.index(MAINTENANCE) < shown.index("A &lt;b&gt;word&lt;/b&gt;.") < shown.index("<main")
    assert "Over." not in shown
    assert MAINTENANCE in text(browser.get(f"/banners?v={before.context['banners'].version}", headers=HTMX))


def test_it_is_read_with_what_frames_every_page(django_assert_num_queries):
    browser = browser_of(person())
    announced()
    with django_assert_num_queries(3):  # the session, the person, the frame
        shown = browser.get("/shortcuts")
    assert MAINTENANCE in text(shown)


def test_an_operator_writes_changes_and_removes_one_on_pages(operator):
    browser = browser_of(operator)
    assert 'href="/announcements"' in text(browser.get("/people"))
    values = {"text": MAINTENANCE, "severity": "warning"}
    values |= {"starts_at": "2026-12-05T20:00", "ends_at": "2026-12-05T08:00"}
    refused = browser.post("/announcements/new", values)
    assert (refused.status_code, "It must be after the start." in text(refused)) == (400, True)
    browser.post("/announcements/new", values | {"ends_at": "2090-12-06T08:00"})
    row = Announcement.objects.get()
    assert 'value="2026-12-05T20:00"' in text(browser.get(f"/announcements/{row.pk}/edit"))
    browser.post(f"/announcements/{row.pk}/edit", {"text": "Done.", "severity": "info"})
    page = text(browser.get("/announcements"))
    assert "Done." in page
    assert "current" in page
    browser.post(f"/announcements/{row.pk}/remove")
    assert "No announcements yet." in text(browser.get("/announcements"))


def test_auditors_read_the_page_and_nobody_else_does(team):
    announced(starts_at=clock.now() + HOUR)
    page = text(browser_of(person(platform_role="auditor")).get("/announcements"))
    assert "scheduled" in page
    assert "New announcement" not in page
    lead = browser_of(person(team, "lead"))
    assert {lead.get(path).status_code for path in ("/announcements", "/announcements/new")} == {403}
