"""All amounts have the currency of the first one, whatever that was of: everything else refuses a second."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.tenants.models import Team, User
from quotas.costs import price_tables
from quotas.costs.models import Bill, NodeCost, Price, SharedCost
from tests.support.fleet import fleet
from tests.support.pages import browser_of
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
AMOUNTS = (Price, NodeCost, Bill, SharedCost)
AMOUNTS_OF: dict[str, tuple[str, dict[str, Any]]] = {
    "price of a flavor": ("prices", {"flavor": "l40s", "per_gpu_hour": "1"}),
    "list price": ("prices", {"offering": "l40s/whole", "per_slice_hour": "1"}),
    "cost of a flavor": ("node-costs", {"flavor": "l40s", "term": "spot", "per": "gpu", "per_hour": "1"}),
    "cost of a node": ("node-costs", {"cluster": "local", "node": "l40s-0", "per": "node", "per_hour": "1"}),
    "bill": ("bills", {"cluster": "local", "month": "2026-01", "amount": "1"}),
    "fixed cost": ("shared-costs", {"name": "network", "month": "2090-01", "amount": "1", "split": "weighted"}),
}
FORMS = ("/prices/set", "/prices/node-costs/set", "/bills/enter", "/bills/fixed-costs/set")
TABLES = {
    "price of a flavor": "price,l40s,,1,",
    "list price": "price,l40s/whole,,1,",
    "cost of a flavor": "cost,l40s,spot,1,gpu",
    "cost of a node": "cost,local/l40s-0,,1,node",
}


@pytest.fixture
def operator(team: Team) -> User:
    """Create an operator of a fleet of which nothing has a price."""
    fleet(team, prices={})
    return person(platform_role="operator")


def post(api: APIClient, of: str, currency: str) -> Any:
    path, body = AMOUNTS_OF[of]
    return api.post(f"/api/v1/{path}", {**body, "currency": currency}, format="json")


def rows() -> list[int]:
    return [model._default_manager.count() for model in AMOUNTS]


@pytest.mark.parametrize("first", AMOUNTS_OF)
def test_a_second_currency_is_refused_of_everything(operator: User, first: str) -> None:
    api = client(operator)
    assert post(api, first, "EUR").status_code == 201
    known = rows()
    for of in AMOUNTS_OF:
        answer = post(api, of, "USD")
        assert (answer.status_code, list(answer.json()["errors"])) == (400, ["currency"]), of
        assert "All prices are in EUR" in answer.json()["errors"]["currency"][0]
    for of, line in TABLES.items():
        table = f"kind,of,term,amount,per,currency\n{line},USD\n"
        done = price_tables.import_table(operator, table, dry_run=False)
        assert [(row.result, row.column) for row in done.rows] == [("error", "currency")], of
    browser = browser_of(operator)
    for path in FORMS:
        assert 'name="currency"' not in browser.get(path).content.decode(), path
    assert rows() == known


def test_without_one_the_currency_is_that_of_all_amounts(operator: User) -> None:
    api = client(operator)
    assert post(api, "bill", "CHF").status_code == 201
    for of in AMOUNTS_OF:
        if of != "bill":
            path, body = AMOUNTS_OF[of]
            assert api.post(f"/api/v1/{path}", body, format="json").json()["currency"] == "CHF", of
    assert api.get("/api/v1/costs?window=7d").json()["currency"] == "CHF"
