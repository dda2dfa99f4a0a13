"""REST of prices, costs of nodes, terms, bills and fixed costs."""

from decimal import Decimal

import pytest

from portal.core.models import AuditEntry
from quotas.costs import public_prices
from quotas.costs.models import Bill, NodeCost, Price, SharedCost
from tests.support.fleet import fleet
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
API = "/api/v1"
PLATFORM = ("node-costs", "node-terms", "bills", "shared-costs")


@pytest.fixture
def operator(team, other_team):
    fleet(team, other_team)
    return client(person(platform_role="operator"))


def post(api, path, **body):
    return api.post(f"{API}/{path}", body, format="json")


def test_a_list_price_is_set_and_ended(operator):
    first = post(operator, "prices", offering="h100/whole", per_slice_hour="3").json()
    assert (first["flavor"], first["offering"]) == ("h100", "h100/whole")
    assert (first["per_gpu_hour"], first["per_slice_hour"]) == (None, "3")
    assert post(operator, "prices", offering="h100/whole", per_slice_hour=None).json()["per_slice_hour"] is None
    listed = operator.get(f"{API}/prices?flavor=h100").json()["results"]
    assert [row["offering"] for row in listed] == ["h100/whole", "h100/whole", None]


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["flavor", "per_gpu_hour"]),
        ({"offering": "h100/whole"}, ["per_slice_hour"]),
        ({"offering": "h100/whole", "flavor": "h100", "per_slice_hour": "1"}, ["flavor"]),
        ({"flavor": "h100", "per_gpu_hour": "1", "per_slice_hour": "1"}, ["per_slice_hour"]),
        ({"offering": "h100/none", "per_slice_hour": "1"}, ["offering"]),
        ({"offering": "h100/claim", "per_slice_hour": "1"}, ["offering"]),
        ({"offering": "h100/whole", "per_slice_hour": "9999999"}, ["per_slice_hour"]),
    ],
)
def test_a_price_of_both_or_of_nothing_is_400(operator, body, fields):
    answer = post(operator, "prices", **body)
    assert (answer.status_code, sorted(answer.json()["errors"])) == (400, fields)
    assert Price.objects.count() == 2


def test_costs_of_nodes_and_terms_are_set_and_listed(operator):
    made = post(operator, "node-costs", flavor="h100", term="spot", per="node", per_hour="26.57", split="aws").json()
    assert (made["term"], made["split"], made["per_hour"], made["node"]) == ("spot", "aws", "26.57", None)
    made = post(operator, "node-costs", cluster="local", node="h100-0", per="gpu", per_hour="2").json()
    assert (made["cluster"], made["node"], made["flavor"], made["split"]) == ("local", "h100-0", None, None)
    post(operator, "node-terms", cluster="local", node="h100-0", term="reserved")
    assert len(operator.get(f"{API}/node-costs").json()["results"]) == 2
    [term] = operator.get(f"{API}/node-terms").json()["results"]
    assert (term["node"], term["term"]) == ("h100-0", "reserved")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"flavor": "h100"}, "term"),
        ({"flavor": "none", "term": "spot"}, "flavor"),
        ({"cluster": "local", "node": "none"}, "node"),
        ({}, "flavor"),
        ({"flavor": "h100", "term": "spot", "split": "aws"}, "split"),
        ({"flavor": "h100", "term": "spot", "per": "node", "split": "half"}, "split"),
        ({"flavor": "h100", "term": "spot", "currency": "USD"}, "currency"),
        ({"flavor": "h100", "term": "rented"}, "term"),
    ],
)
def test_costs_that_cannot_be_are_400(operator, body, field):
    answer = post(operator, "node-costs", **{"per": "gpu", "per_hour": "1", **body})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])
    assert not NodeCost.objects.exists()


def test_bills_and_fixed_costs_are_entered_and_listed(operator):
    bill = post(operator, "bills", cluster="local", month="2026-01", amount="48211.37", source="1187").json()
    assert (bill["month"], bill["amount"], bill["currency"]) == ("2026-01", "48211.37", "EUR")
    cost = post(operator, "shared-costs", name="support", month="2026-01", amount="600", split="even").json()
    assert (cost["teams"], cost["cluster"], cost["month"]) == (["language", "vision"], None, "2026-01")
    assert (len(operator.get(f"{API}/bills").json()["results"]), Bill.objects.count()) == (1, 1)
    assert (len(operator.get(f"{API}/shared-costs").json()["results"]), SharedCost.objects.count()) == (1, 1)


@pytest.mark.parametrize("month", ["2090-01", "2026-13", "soon"])
def test_a_bill_of_another_month_is_400(operator, month):
    answer = post(operator, "bills", cluster="local", month=month, amount="1")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["month"])


def test_a_table_is_checked_imported_and_exported(operator):
    table = "kind,of,term,amount,valid_from\nprice,l40s,,1.30,2090-01-01T00:00:00Z\ncost,l40s,spot,0.6,\n"
    dry = post(operator, "prices/import", csv=table, dry_run=True).json()
    assert ([row["result"] for row in dry["results"]], dry["applied"], dry["errors"]) == (["created"] * 2, False, 0)
    assert post(operator, "prices/import", csv=table).json()["applied"] is True
    exported = operator.get(f"{API}/prices/export")
    assert (exported.status_code, exported["Content-Type"]) == (200, "text/csv; charset=utf-8")
    lines = exported.content.decode().splitlines()
    assert lines[0] == "kind,of,term,amount,per,split,currency,valid_from,source"
    assert "price,l40s,,1.3,gpu,,EUR,2090-01-01T00:00:00Z," in lines
    [wrong] = post(operator, "prices/import", csv="kind,of,amount\nprice,l40s,-1\n").json()["results"]
    assert (wrong["line"], wrong["column"], wrong["result"]) == (2, "amount", "error")
    bad = post(operator, "prices/import", csv="of\nx\n")
    assert (bad.status_code, list(bad.json()["errors"])) == (400, ["csv"])


LATER = {"valid_from": "2090-01-05T00:00:00Z"}
SCHEDULED = {
    "prices": ({"flavor": "h100", "per_gpu_hour": "33", **LATER}, {"per_gpu_hour": "3.3"}),
    "node-costs": ({"flavor": "h100", "term": "spot", "per": "gpu", "per_hour": "22", **LATER}, {"per_hour": "2.2"}),
    "node-terms": ({"cluster": "local", "node": "h100-0", "term": "spot", **LATER}, {"term": "reserved"}),
    "shared-costs": (
        {"name": "support", "month": "2090-01", "amount": "600", "split": "weighted"},
        {"amount": "60"},
    ),
}


@pytest.mark.parametrize("path", SCHEDULED)
def test_what_has_not_begun_is_withdrawn_with_an_audit_entry_and_set_right(operator, path):
    body, right = SCHEDULED[path]
    made = post(operator, path, **body).json()
    assert post(operator, path, **body | right).status_code == 409
    assert operator.delete(f"{API}/{path}/{made['id']}").status_code == 204
    entry = AuditEntry.objects.latest("pk")
    assert (entry.action.rpartition(".")[2], entry.after) == ("withdraw", None)
    assert entry.before is not None
    assert {"33", "22", "spot", "600"} & {str(value) for value in entry.before.values()}
    assert post(operator, path, **body | right).status_code == 201
    assert operator.delete(f"{API}/{path}/{made['id']}").status_code == 404


@pytest.mark.parametrize("path", SCHEDULED)
def test_what_has_begun_is_not_withdrawn(operator, path):
    begun = {"valid_from": None} if "valid_from" in SCHEDULED[path][0] else {"month": "2026-01"}
    made = post(operator, path, **SCHEDULED[path][0] | begun).json()
    answer = operator.delete(f"{API}/{path}/{made['id']}")
    assert (answer.status_code, answer.json()["reason"]) == (409, "wrong_phase")
    assert made["id"] in [row["id"] for row in operator.get(f"{API}/{path}").json()["results"]]


@pytest.mark.parametrize("path", SCHEDULED)
def test_only_operators_with_scope_admin_withdraw(operator, team, path):
    made = post(operator, path, **SCHEDULED[path][0]).json()
    reading = client(person(platform_role="operator"), "read")
    for other in (client(person(team, "lead")), client(person(platform_role="auditor")), reading):
        assert other.delete(f"{API}/{path}/{made['id']}").status_code == 403
    assert operator.get(f"{API}/{path}").json()["results"][0]["id"] == made["id"]


def test_the_price_before_a_withdrawn_one_goes_on(operator, team):
    made = post(operator, "prices", **SCHEDULED["prices"][0]).json()
    operator.delete(f"{API}/prices/{made['id']}")
    [price] = operator.get(f"{API}/prices?flavor=h100").json()["results"]
    assert Decimal(price["per_gpu_hour"]) == Decimal("3.2")


def test_public_list_prices_have_day_and_source(operator, team):
    found = client(person(team)).get(f"{API}/prices/public").json()["results"]
    assert len(found) == len(public_prices.listed())
    [one] = [row for row in found if row["instance"] == "p5.48xlarge"]
    assert one == {
        "provider": "aws",
        "instance": "p5.48xlarge",
        "gpu": "H100",
        "gpus": 8,
        "region": "",
        "term": "on-demand",
        "per_node_hour": "55.04",
        "per_gpu_hour": "6.8800",
        "currency": "USD",
        "as_of": "2026-11-09",
        "source": "data-receipts 109-gpu-pricing/hyperscalers.json",
    }
    assert all(row["source"] and row["as_of"] for row in found)


@pytest.mark.parametrize("path", PLATFORM)
def test_what_the_platform_pays_is_shown_to_platform_staff_alone(operator, team, path):
    assert client(person(platform_role="auditor")).get(f"{API}/{path}").status_code == 200
    assert client(person(team, "lead")).get(f"{API}/{path}").status_code == 403
    assert client(person(team, "lead")).get(f"{API}/prices/export").status_code == 403
