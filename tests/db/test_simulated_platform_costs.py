"""What the platform of a demo paid in its simulated past: a node cost, a fixed cost and the bill of a month."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.core.management import call_command

from portal.core import clock
from portal.tenants.models import User
from quotas.costs.models import Bill, NodeCost, SharedCost
from tests.support import demo_fleet
from tests.support.pages import browser_of, text
from tests.support.people import client

pytestmark = pytest.mark.django_db
STARTED = datetime(2026, 3, 3, 16, 7, tzinfo=UTC)
FEBRUARY = date(2026, 2, 1)


@pytest.fixture(autouse=True)
def demo(db):
    demo_fleet.record(STARTED)
    with clock.frozen(STARTED + timedelta(minutes=23)):
        yield


def stated():
    return [model.objects.count() for model in (Bill, NodeCost, SharedCost)]


def test_a_month_that_has_ended_has_a_bill_that_its_costs_add_up_to():
    call_command("simulate_history", "--days=31d")
    bill, cost, fixed = Bill.objects.get(), NodeCost.objects.get(), SharedCost.objects.get()
    assert (bill.month, fixed.month, str(cost.flavor)) == (FEBRUARY, FEBRUARY, "h100")
    assert {bill.source, cost.source, fixed.source} == {"simulated"}
    auditor = User.objects.get(username="auditor")
    query = "window=2026-02-01,2026-03-01&aggregate=all&idle=separate"
    found = client(auditor).get(f"/api/v1/costs?{query}").json()
    assert (found["billed_share"], found["total"] is None) == ("1.0000", False)
    adjustment = sum(Decimal(row[name]) for row in found["results"] for name in ("adjustment", "idle_adjustment"))
    assert adjustment > 0
    page = text(browser_of(auditor).get("/bills"))
    assert "No bill was entered yet" not in page
    assert f"{bill.amount:,.2f}" in page
    call_command("simulate_history", "--days=31d")
    assert stated() == [1, 1, 1]


def test_a_history_without_the_beginning_of_a_month_has_none_of_them():
    call_command("simulate_history", "--days=1d")
    assert stated() == [0, 0, 0]
