"""The clock skew of clusters: stored, and shown on the page and as a metric."""

from typing import Any

import pytest
from django.test import Client

from allocations.cluster.clock_skew import SkewMeter
from allocations.management.commands import watch
from allocations.reconcile.usage_pace import UsagePace
from quotas.metering import clock_skew
from quotas.metering.models import ClockSkew
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.pages import browser_of, text
from tests.support.people import person
from tests.support.quotas import hour

pytestmark = pytest.mark.django_db


def test_the_newest_measurement_replaces_the_one_before() -> None:
    clock_skew.record(LOCAL, 0.1, 0.05)
    clock_skew.record(LOCAL, 1.5, 0.05)
    assert [(one.cluster_id, one.seconds, one.error) for one in clock_skew.current()] == [(LOCAL, 1.5, 0.05)]


def test_the_watcher_writes_what_it_has_measured_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    meter, seconds = SkewMeter(), 0.0
    monkeypatch.setattr("time.monotonic", lambda: seconds)
    beat = watch.Beat(LOCAL, UsagePace(LOCAL), meter)
    meter.add("Mon, 02 Nov 2026 00:00:05 GMT", hour(0), hour(0))
    beat()
    assert not ClockSkew.objects.exists()
    seconds = 61.0
    beat()
    assert ClockSkew.objects.get().seconds == 5.5


def test_page_and_metric_say_which_clock_is_ahead(settings: Any) -> None:
    fleet()
    settings.METRICS_TOKEN = "scrape-me"
    clock_skew.record(LOCAL, -1.25, 0.04)
    metrics = Client().get("/metrics", headers={"Authorization": "Bearer scrape-me"}).content.decode()
    assert 'gpu_portal_clock_skew_seconds{cluster="local"} -1.25' in metrics
    page = text(browser_of(person(platform_role="auditor")).get("/costs/proof"))
    assert "The clock of cluster local is 1.25 s behind its watcher's (± 0.04 s)." in page.replace("&#x27;", "'")
