"""The metrics of what is requested, waits, is held and costs."""

from datetime import timedelta

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from allocations.domain.phases import Phase
from portal.core import clock
from tests.support.fleet import fleet
from tests.support.pages import held, in_phase, requested
from tests.support.people import person

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def member(team, project):
    fleet(team)
    return person(team)


@pytest.fixture
def value(settings):
    """Return ``value(metric, **labels)``: what is exported now, or None."""
    settings.METRICS_TOKEN = "scrape-me"

    def read(metric, **labels):
        text = Client().get("/metrics", headers={"Authorization": "Bearer scrape-me"}).content.decode()
        families = text_string_to_metric_families(text)
        found = [one for family in families for one in family.samples if one.name == metric]
        return next((one.value for one in found if labels.items() <= one.labels.items()), None)

    return read


def test_allocations_are_counted_by_team_and_phase(value, member, project):
    held(requested(member, project))
    in_phase(requested(member, project), Phase.QUEUED)
    assert value("gpu_portal_allocations", team="vision", phase="active") == 1
    assert value("gpu_portal_allocations", team="vision", phase="queued") == 1


def test_the_longest_wait_is_that_of_what_is_queued(value, member, project):
    with clock.frozen(clock.now() - HOUR):
        in_phase(requested(member, project), Phase.QUEUED)
    in_phase(requested(member, project), Phase.QUEUED)
    assert value("gpu_portal_oldest_queued_seconds", team="vision") == pytest.approx(3600, abs=60)


def test_waits_are_told_of_what_was_held_within_the_hour(value, member, project):
    assert value("gpu_portal_wait_seconds", quantile="0.5") is None
    row = requested(member, project)
    row.created_at, row.held_at = clock.now() - timedelta(seconds=90), clock.now()
    row.save()
    assert value("gpu_portal_wait_seconds", quantile="0.5") == pytest.approx(90, abs=1)
    row.held_at = clock.now() - 2 * HOUR
    row.save()
    assert value("gpu_portal_wait_seconds", quantile="0.5") is None


def test_pools_tell_what_there_is_and_what_is_held(value, member, project):
    held(requested(member, project, count=2))
    total = value("gpu_portal_pool_units", pool="l40s/gpu", state="total")
    assert total >= 2
    assert value("gpu_portal_pool_units", pool="l40s/gpu", state="held") == 2


def test_this_months_cost_is_that_of_the_ledger(value, member, project):
    now = clock.now()
    with clock.frozen(now.replace(day=15, hour=12)):
        held(requested(member, project), hours=2)
        assert value("gpu_portal_month_gpu_hours", team="vision") == pytest.approx(2)
        assert value("gpu_portal_month_cost", team="vision", currency="EUR") == pytest.approx(2.2)
