"""What has no price, on pages: not priced, never 0.00, and sums say what they leave out."""

from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from portal.core import clock
from portal.core.heartbeat import beat
from portal.tenants.actors import SYSTEM
from quotas.costs import services as costs
from quotas.metering import services as metering
from tests.support.fleet import allocate
from tests.support.fleet import fleet as make_fleet
from tests.support.pages import HTMX, ended, held, text
from tests.support.queued import GPU, job
from tests.support.quotas import attribution

pytestmark = pytest.mark.django_db
LEFT_OUT = "1.00 GPU-hour has no price"


@pytest.fixture
def fleet(team):
    """Give the team a fleet in which only h100 has a price."""
    make_fleet(team, prices={"h100": "3.20"})
    beat("worker")
    beat("watcher")


@pytest.fixture
def noon(fleet):
    with clock.frozen(clock.now().replace(hour=12, minute=0, second=0, microsecond=0)) as at:
        yield at


@pytest.fixture
def unpriced(noon, member, project):
    return held(allocate(member, project, name="train"), hours=2)


@pytest.fixture
def partly(unpriced, noon):
    costs.set_price(SYSTEM, "l40s", "1.10", "EUR", noon - timedelta(hours=1), "test")
    return unpriced


@pytest.mark.parametrize(
    "path", ["/", "/allocations", "/allocations/{}", "/allocations/{}/release", "/costs?window=today"]
)
def test_use_without_a_price_is_not_priced(unpriced, browser, path):
    page = text(browser.get(path.format(unpriced.pk)))
    assert "not priced" in page
    assert "0.00 EUR" not in page
    assert ">0.00<" not in page


@pytest.mark.parametrize(
    "path", ["/", "/allocations", "/allocations/{}", "/allocations/{}/release", "/costs?window=today"]
)
def test_a_cost_says_what_it_leaves_out(partly, browser, path):
    page = text(browser.get(path.format(partly.pk)))
    assert "1.10" in page
    assert LEFT_OUT in page or "1.10 *" in page
    assert "not priced" not in page


def test_the_page_of_an_ended_allocation_says_that_it_is_not_priced(unpriced, browser):
    ended(unpriced)
    assert 'without bills and fixed costs">not priced</dd>' in text(browser.get(f"/allocations/{unpriced.pk}"))


def test_extending_says_that_an_hour_is_not_priced(unpriced, browser):
    assert "It has no price." in text(browser.get(f"/allocations/{unpriced.pk}/extend"))


def test_the_page_of_a_job_says_that_it_is_not_priced(noon, project, browser):
    uid = job("train", project.namespace, conditions={}, cluster_queue="team-vision", usage={"l40s": {GPU: 2}})
    held_by = attribution(team="vision", project=project.slug, member="", namespace=project.namespace)
    metering.open_interval(uuid4(), uid, f"local/job:{uid}", noon - timedelta(hours=1), held_by, 2, {})
    assert '<dt>Cost so far</dt><dd class="figure">not priced</dd>' in text(browser.get(f"/jobs/{uid}"))


def test_a_request_says_that_it_is_not_priced(noon, project, browser):
    values = {"project": "vision-train", "offering": "l40s/whole", "count": "1", "length": "8"}
    part = text(browser.get("/request/preview", values, headers=HTMX))
    assert '<span class="figure">not priced</span>' in part
    assert "per hour" not in part
    never = text(browser.get("/request/preview", values | {"count": "6"}, headers=HTMX))
    assert "8 h, not priced" in never
    assert '<td class="number rate">not priced</td>' in text(browser.get("/request"))


def test_lines_without_a_price_have_no_part_of_the_sum(unpriced, member, project, browser):
    held(allocate(member, project, "h100/whole", name="priced"), hours=1)
    table = browser.get("/costs?window=today&aggregate=flavor").context["table"]
    assert [(line.name, line.cost, line.share) for line in table.lines] == [
        ("h100", Decimal("3.20"), 100),
        ("l40s", None, None),
    ]
    assert (table.total, table.left_out) == (Decimal("3.20"), "2.00 GPU-hours have no price")


def test_the_sum_of_what_has_no_price_is_not_priced(unpriced, browser):
    table = browser.get("/costs?window=today").context["table"]
    assert (table.total, table.left_out) == (None, "")
