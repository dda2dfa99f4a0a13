"""Pages of costs over a fleet of many nodes of eight GPUs, filled by SQL."""

from decimal import Decimal

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from portal.core import clock
from quotas.metering.models import CapacityInterval
from tests.support import fleet_days
from tests.support.fleet import fleet
from tests.support.pages import browser_of
from tests.support.people import client, person
from tests.support.quotas import hour
from tests.support.sizes import size

pytestmark = pytest.mark.django_db
NODES = size(100, 1000)
ASSETS, DAY = "/costs/assets", "window=2026-11-02,2026-11-03"
PAGES = (f"{ASSETS}?{DAY}", f"{ASSETS}?{DAY}&page=2", f"{ASSETS}?{DAY}&sort=idle", f"/costs/savings?{DAY}")


def statements(nodes: int) -> list[int]:
    """Return the statements of each page over so many nodes."""
    browser, counts = browser_of(person(platform_role="operator")), []
    fleet_days.fill(hour(0), 1, nodes, "3.20")
    for page in PAGES:
        browser.get(page)
        with CaptureQueriesContext(connection) as caught:
            assert browser.get(page).status_code == 200
        counts.append(len(caught))
    return counts


def test_a_page_of_25_of_many_nodes_takes_the_statements_of_one_of_a_small_fleet():
    fleet()
    with clock.frozen(hour(30)):
        with transaction.atomic():
            few = statements(30)
            transaction.set_rollback(True)
        assert statements(NODES) == few
        operator = person(platform_role="operator")
        context = browser_of(operator).get(f"{ASSETS}?{DAY}&page=3").context
        assert CapacityInterval.objects.count() == 8 * NODES
        assert (len(context["nodes"]), context["first"], context["node_count"]) == (25, 51, NODES)
        assert {len(group.gpus) for group in context["nodes"]} == {8}
        query = f"{DAY}&aggregate=node&filter=flavor:h100&limit=75"
        rows = client(operator).get(f"/api/v1/costs/assets?{query}").json()["results"][50:]
    for group, row in zip(context["nodes"], rows, strict=True):
        shown = {cell.title: cell for cell in group.line.cells}
        assert (group.key.node, group.line.capacity) == (row["node"], "192.00")
        assert (Decimal(shown["Held"].hours), Decimal(shown["Idle"].hours)) == (
            Decimal(row["held"]),
            Decimal(row["idle"]),
        )
        assert Decimal(shown["Idle"].cost.removesuffix(" EUR")) == Decimal(row["idle_cost"])
