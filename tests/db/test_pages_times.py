"""Times on pages: in the reader's zone, which the title names, also within sentences and in forms."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.safestring import mark_safe

from allocations.domain.phases import Phase
from allocations.models import Allocation
from frontend.templatetags.portal import times
from portal.audit.entries import audit
from portal.core import clock
from portal.core.models import AuditEntry
from portal.tenants.actors import SYSTEM
from quotas.costs import services as costs
from tests.support.pages import HTMX, browser_of, held, in_phase, requested, text
from tests.support.people import person

pytestmark = pytest.mark.django_db
NEPAL = "Asia/Kathmandu"  # 5 hours and 45 minutes before UTC, all year
AT = datetime(2126, 3, 1, 20, 30, tzinfo=UTC)
SHOWN = (
    '<time datetime="2126-03-01T20:30:00+00:00" title="2126-03-02 02:15:00 Asia/Kathmandu (UTC+05:45)">'
    "2126-03-02 02:15</time>"
)


@pytest.fixture
def there(browser) -> Client:
    """Return the member's browser in Nepal."""
    browser.cookies["timezone"] = NEPAL
    return browser


def waits(member, project) -> Allocation:
    return in_phase(requested(member, project), Phase.SCHEDULED, "starts_later", f"Starts at {AT:%Y-%m-%d %H:%M} UTC.")


def test_a_time_in_a_sentence_is_in_the_readers_zone_on_every_page_that_shows_it(fleet, member, project, there):
    row = waits(member, project)
    for path in ("/", f"/allocations/{row.pk}", "/queues/vision"):
        page = text(there.get(path))
        assert "UTC." not in page
        if path != "/queues/vision":
            assert f"Starts at {SHOWN}." in page


@pytest.mark.parametrize("zone", [None, "", "UTC", "Mars/Olympus", "../../etc/passwd", "x" * 99, "Europe/\x00"])
def test_without_a_zone_that_is_known_times_are_in_utc_and_say_so(fleet, member, project, browser, zone):
    if zone is not None:
        browser.cookies["timezone"] = zone
    page = text(browser.get(f"/allocations/{waits(member, project).pk}"))
    utc = '<time datetime="2126-03-01T20:30:00+00:00" title="2126-03-01 20:30:00 UTC">2126-03-01 20:30 UTC</time>'
    assert f"Starts at {utc}." in page


def test_a_sentence_keeps_its_seconds_and_what_needs_escaping():
    assert "20:30:05 UTC</time>" in times("Pods end at 2126-03-01 20:30:05 UTC.")
    assert times("<b> & no time") == "&lt;b&gt; &amp; no time"


def test_a_time_in_html_is_in_the_readers_zone_and_its_tags_stay():
    with timezone.override(NEPAL):
        assert times(mark_safe("<b>From 2126-03-01 20:30 UTC</b>")) == f"<b>From {SHOWN}</b>"


def test_a_time_in_an_error_of_a_form_is_in_the_readers_zone(fleet):
    costs.set_price(SYSTEM, "l40s", Decimal(2), "EUR", AT, "test")
    browser = browser_of(person(platform_role="operator"))
    browser.cookies["timezone"] = NEPAL
    page = text(browser.post("/prices/set", {"of": "flavor:l40s", "amount": "3", "valid_from": "2126-03-02T02:15"}))
    assert "l40s has another price from <time" in page
    assert " UTC on." not in page


def test_a_start_is_typed_in_the_readers_zone(fleet, project, there):
    start = clock.this_minute() + timedelta(hours=3)
    typed = start + timedelta(hours=5, minutes=45)
    form = {"project": "vision-train", "offering": "l40s/whole", "count": "1", "length": "8"}
    form["starts_at"] = f"{typed:%Y-%m-%dT%H:%M}"
    part = text(there.get("/request/preview", form, headers=HTMX))
    assert f'Starts <time datetime="{start.isoformat()}"' in part
    assert f"Time zone {NEPAL}." in text(there.get("/request"))
    there.post("/request", form)
    assert Allocation.objects.get().starts_at == start


def test_an_alternative_with_a_later_start_fills_the_form_in_the_readers_zone(fleet, member, project, there):
    holder = held(requested(member, project, count=4))
    query = {"project": "vision-train", "offering": "l40s/whole", "count": "1", "length": "8"}
    page = there.get("/request", query)
    [chip] = page.context["chips"]
    assert f'1 × l40s/whole from <time datetime="{chip.starts_at.isoformat()}"' in text(page)
    sent = query | {"starts_at": there.get(chip.url).context["form"]["starts_at"].value()}
    there.post("/request", sent)
    starts_at = Allocation.objects.exclude(pk=holder.pk).get().starts_at
    assert starts_at == chip.starts_at.replace(second=0, microsecond=0)


def test_days_of_the_audit_log_are_the_readers(team):
    AuditEntry.objects.all().delete()
    for name, minute in (("late-evening", 14), ("early-morning", 15)):
        with clock.frozen(AT.replace(hour=18, minute=minute)):
            audit("ada", "limit.set", name)
    auditor = browser_of(person(platform_role="auditor"))
    auditor.cookies["timezone"] = NEPAL
    page = text(auditor.get("/audit?since=2126-03-01&until=2126-03-01"))
    assert "late-evening" in page
    assert "early-morning" not in page
    assert "since=2126-02-28T18%3A15%3A00%2B00%3A00&amp;until=2126-03-01T18%3A15%3A00%2B00%3A00" in page
    assert "early-morning" in text(auditor.get("/audit?since=2126-03-02&until=2126-03-02"))


def test_times_over_rest_stay_in_utc(fleet, member, project, there):
    row = waits(member, project)
    answer = there.get(f"/api/v1/allocations/{row.pk}").json()
    assert answer["created_at"].endswith("Z")
    assert "20:30 UTC" in answer["message"]
