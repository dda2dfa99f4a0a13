"""Prices, bills and the proof on pages: the services, permissions and audit of REST, and a preview of each change."""

import re
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from portal.core import clock, heartbeat
from portal.core.models import AuditEntry
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Team, User
from quotas.catalog import services as catalog
from quotas.catalog.discovery import discover
from quotas.catalog.models import Flavor
from quotas.catalog.sync import sync
from quotas.costs import bills, capacity_services, node_intervals, rollups, services
from quotas.costs.capacity_services import CostSubject
from quotas.costs.models import Bill, NodeCost, NodeTerm, Price, SharedCost
from quotas.costs.node_intervals import FoundNode
from quotas.costs.node_terms import Term
from quotas.costs.rating import Window
from quotas.metering import proofs
from quotas.metering.hours import DAY, HOUR
from quotas.metering.models import BalanceProof
from tests.support import cost_answers
from tests.support.capacity import RESOURCES, SEEN, record
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.gpu_facts import plugin_node
from tests.support.pages import browser_of, text
from tests.support.people import client, person
from tests.support.quotas import T0, hour, l40s_nodes, used

pytestmark = pytest.mark.django_db
NOW = T0 + 10 * HOUR
OCTOBER = Window(datetime(2026, 10, 1, tzinfo=T0.tzinfo), datetime(2026, 11, 1, tzinfo=T0.tzinfo))
CAPACITY = Decimal(8 * 31 * 24) * Decimal("1.1")
PAGES = ("/prices", "/bills", "/costs/proof")
FORMS = {
    "/prices/set": {"of": "flavor:l40s", "amount": "1.30"},
    "/prices/node-costs/set": {"of": "l40s", "term": "spot", "per": "gpu", "amount": "0.60"},
    "/prices/node-terms/set": {"of": "local/l40s-0", "term": "reserved"},
    "/prices/import": {"csv": "kind,of,amount\nprice,l40s,1.30\n"},
    "/bills/enter": {"cluster": LOCAL, "month": "2026-10", "amount": "9821.00", "source": "invoice 7"},
    "/bills/fixed-costs/set": {"name": "network", "month": "2026-11", "amount": "300", "split": "weighted"},
}
TABLE = "kind,of,term,amount,per\nprice,l40s,,1.30,gpu\ncost,l40s,spot,0.60,gpu\nterm,local/l40s-0,reserved,,\n"


@pytest.fixture(autouse=True)
def now(team: Team, other_team: Team) -> Iterator[datetime]:
    """Eight l40s at 1.10 through October, of which vision held two for ten days."""
    fleet(team, other_team)
    heartbeat.beat("worker")
    heartbeat.beat("watcher")
    record(RESOURCES, (OCTOBER.start - DAY - T0) / HOUR)
    used(OCTOBER.start, OCTOBER.start + 10 * DAY, 2)
    rollups.roll_up(LOCAL, OCTOBER.start - DAY, OCTOBER.end)
    with clock.frozen(NOW) as at:
        yield at


@pytest.fixture
def operator() -> User:
    return person(platform_role="operator")


@pytest.fixture
def browser(operator: User) -> Client:
    return browser_of(operator)


def preview(browser: Client, path: str, **values: Any) -> Any:
    return browser.post(path, {**FORMS[path], **values})


def confirmed(browser: Client, path: str, **values: Any) -> Any:
    """Preview a change, and apply just that."""
    seen = preview(browser, path, **values).context
    form = {**FORMS[path], **values}
    form.pop("file", None)
    if path == "/prices/import":
        form["csv"] = seen["form"].data["csv"]
    return browser.post(path, {**form, "confirm": seen["digest"], "key": seen["key"]}, follow=True)


def counts() -> tuple[int, ...]:
    models = (Price, NodeCost, NodeTerm, Bill, SharedCost, AuditEntry)
    return tuple(model._default_manager.count() for model in models)


@pytest.mark.parametrize("path", FORMS)
def test_a_preview_changes_nothing_and_applying_is_in_the_audit_log(browser, operator, path):
    before = counts()
    seen = preview(browser, path)
    assert (seen.status_code, bool(seen.context["effect"])) == (200, True)
    assert counts() == before
    assert confirmed(browser, path).redirect_chain
    assert sum(counts()[:-1]) == sum(before[:-1]) + 1
    assert AuditEntry.objects.latest("pk").actor == operator.username


@pytest.mark.parametrize("path", FORMS)
def test_a_double_click_sets_it_once(browser, path):
    seen = preview(browser, path).context
    form = {**FORMS[path], "confirm": seen["digest"], "key": seen["key"]}
    before = counts()
    for _ in range(2):
        assert browser.post(path, form).status_code == 302
    assert sum(counts()[:-1]) == sum(before[:-1]) + 1


@pytest.mark.parametrize("path", FORMS)
def test_other_values_than_those_previewed_are_previewed_again(browser, path):
    digest = preview(browser, path).context["digest"]
    other = {"source": "another"} if path != "/prices/import" else {"csv": "kind,of,amount\nprice,l40s,1.40\n"}
    if path == "/prices/node-terms/set":
        other = {"term": "spot"}
    before = counts()
    answer = browser.post(path, {**FORMS[path], **other, "confirm": digest})
    assert "changed after the" in text(answer)
    assert counts() == before


@pytest.mark.parametrize("path", FORMS)
def test_only_operators_set_anything(team, path):
    for user in (person(team, "lead"), person(platform_role="auditor")):
        for answer in (browser_of(user).get(path), browser_of(user).post(path, FORMS[path])):
            assert answer.status_code == 403


def test_bills_and_the_proof_are_for_platform_staff_and_prices_for_all_but_costs_of_nodes(browser, team):
    preview_of_cost = confirmed(browser, "/prices/node-costs/set")
    assert "Node costs" in text(preview_of_cost)
    member, auditor = browser_of(person(team)), browser_of(person(platform_role="auditor"))
    assert [member.get(path).status_code for path in PAGES] == [200, 403, 403]
    assert [auditor.get(path).status_code for path in PAGES] == [200, 200, 200]
    page = text(member.get("/prices"))
    assert "1.10 EUR per GPU-hour" in page
    assert "Node costs" not in page
    assert "/prices/set" not in page
    assert "/prices/set" not in text(auditor.get("/prices"))


def test_a_price_that_is_set_is_in_costs_from_then_on(browser, team):
    used(NOW, None)
    assert "1.30 EUR per GPU-hour" in text(confirmed(browser, "/prices/set"))
    with clock.frozen(NOW + 2 * HOUR):
        window = Window(NOW, NOW + 2 * HOUR)
        assert cost_answers.costs(window, ("all",), now=NOW + 2 * HOUR).total == "2.6000"


def test_a_preview_of_a_price_says_what_each_slice_costs_before_and_after(browser):
    page = text(preview(browser, "/prices/set", of="flavor:h100", amount="4.80"))
    assert "3.20 EUR per GPU-hour" in page
    assert "4.80 EUR per GPU-hour" in page
    assert "One slice-hour of h100/whole" in page
    browser.post("/prices/set", {})
    change = preview(browser, "/prices/set", of="offering:h100/whole", amount="3.9").context["effect"].changes
    assert [(one.before, one.after) for one in change] == [
        ("none", "3.90 EUR per slice-hour"),
        ("3.20 EUR", "3.90 EUR"),
    ]


def test_a_list_price_ends_without_an_amount_and_a_flavors_price_does_not(browser):
    confirmed(browser, "/prices/set", of="offering:l40s/whole", amount="1.00")
    with clock.frozen(NOW + HOUR):
        ended = confirmed(browser, "/prices/set", of="offering:l40s/whole", amount="")
    assert "the price of its flavor" in text(ended)
    refused = preview(browser, "/prices/set", amount="")
    assert (refused.status_code, "Give the price of a GPU-hour." in text(refused)) == (400, True)


@pytest.mark.parametrize(
    ("path", "values", "field", "words"),
    [
        ("/prices/set", {"amount": "-1"}, "amount", "Give a number from 0"),
        ("/prices/set", {"valid_from": "2026-11-01T00:00"}, "valid_from", "cannot change what was charged"),
        ("/prices/set", {"of": "flavor:unknown"}, "of", "not one of the available choices"),
        ("/prices/node-costs/set", {"of": "local/l40s-0"}, "term", "none with a node"),
        ("/prices/node-costs/set", {"split": "aws"}, "split", "is not split"),
        ("/prices/node-terms/set", {"of": "local/nothing"}, "of", "There is no GPU node nothing"),
        ("/bills/enter", {"month": "2026-11"}, "month", "once it has ended"),
        ("/bills/enter", {"month": "soon"}, "month", "is not a valid month"),
        ("/bills/fixed-costs/set", {"teams": ["vision"]}, "teams", "only if it is split evenly"),
    ],
)
def test_a_refusal_stands_at_its_field(browser, path, values, field, words):
    answer = preview(browser, path, **values)
    assert answer.status_code == 400
    assert words in " ".join(answer.context["form"].errors[field])


def test_prices_have_their_history_with_the_time_in_which_each_counts(browser):
    flavor = Flavor.objects.get(name="l40s")
    services.set_price(SYSTEM, flavor.name, "1.30", "EUR", NOW, "contract 7")
    services.set_price(SYSTEM, flavor.name, "1.40", "EUR", NOW + DAY)
    with clock.frozen(NOW + HOUR):
        lines = [line for line in browser.get("/prices?all=1").context["lines"] if line.subject == "l40s"]
        assert [(line.value, line.state, line.until) for line in lines] == [
            ("1.40 EUR per GPU-hour", "scheduled", None),
            ("1.30 EUR per GPU-hour", "in force", NOW + DAY),
            ("1.10 EUR per GPU-hour", "replaced", NOW),
        ]
        shown = [line.state for line in browser.get("/prices").context["lines"] if line.subject == "l40s"]
        assert shown == ["scheduled", "in force"]
    rest = client(person(platform_role="auditor")).get("/api/v1/prices?flavor=l40s").json()["results"]
    assert [row["per_gpu_hour"] for row in rest] == ["1.4", "1.3", "1.1"]


def test_offerings_without_a_price_are_named_until_one_is_set(browser, team):
    assert "Not priced" not in text(browser.get("/prices"))
    found = [plugin_node("t4-0", "Tesla-T4", {"nvidia.com/gpu": 4}, "15360")]
    sync(LOCAL, discover([*l40s_nodes(), *found], []), {})
    [flavor] = Flavor.objects.filter(accepted=False)
    catalog.accept_flavor(SYSTEM, flavor)
    page = text(browser.get("/prices"))
    assert f"<code>{flavor.name}/whole</code>" in page
    assert f"/prices/set?of=flavor:{flavor.name}" in page
    assert "Set the price of" not in text(browser_of(person(team)).get("/prices"))
    confirmed(browser, "/prices/set", of=f"flavor:{flavor.name}")
    assert "Not priced" not in text(browser.get("/prices"))


def test_a_table_is_checked_and_then_imported(browser):
    before = counts()
    file = SimpleUploadedFile("prices.csv", TABLE.encode())
    checked = browser.post("/prices/import", {"file": file})
    page = text(checked)
    assert "3 rows would be created" in page
    assert "price,l40s,,1.30,gpu" in page
    assert "l40s 1.3 EUR from <time" in page
    assert counts() == before
    context = checked.context
    form = {"csv": context["form"].data["csv"].replace("\n", "\r\n"), "confirm": context["digest"]}
    done = browser.post("/prices/import", {**form, "key": context["key"]}, follow=True)
    assert "Imported: 3 created, 0 unchanged." in text(done)
    assert (Price.objects.filter(per_gpu_hour="1.3").count(), NodeCost.objects.count(), NodeTerm.objects.count()) == (
        1,
        1,
        1,
    )


def test_a_table_with_an_error_names_its_line_and_cannot_be_imported(browser):
    before = counts()
    checked = preview(browser, "/prices/import", csv=TABLE + "price,unknown,,1,gpu\n")
    page = text(checked)
    assert "1 row cannot be imported" in page
    assert "There is no flavor unknown" in page
    assert '<td data-label="Column"><code>of</code></td>' in page
    assert 'name="confirm"' not in page
    forced = browser.post(
        "/prices/import",
        {"csv": checked.context["form"].data["csv"], "confirm": checked.context["digest"], "key": "x"},
    )
    assert (forced.status_code, counts()) == (400, before)


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"\xff\xfe\x00", "not UTF-8 text"), (b"", "Choose a CSV file"), (b"a,b\n1,2\n", "names of the columns")],
)
def test_a_file_that_is_no_table_is_refused(browser, data, words):
    answer = browser.post("/prices/import", {"file": SimpleUploadedFile("x.csv", data)})
    assert (answer.status_code, words in text(answer)) == (400, True)


def test_a_bill_is_previewed_with_its_difference_and_is_then_in_costs(browser, operator):
    amount = CAPACITY * Decimal("1.5")
    page = text(preview(browser, "/bills/enter", amount=str(amount)))
    assert f"the capacity of local cost {CAPACITY:,.2f} EUR in that month." in page
    assert f"The difference is {amount - CAPACITY:+,.2f} EUR: +264.00 EUR" in page
    assert "Bills then cover 97 % of what GPUs and nodes cost in the last 12 months." in page
    assert cost_answers.costs(OCTOBER, ("team",), now=NOW).rows[0].adjustment == "0"
    done = confirmed(browser, "/bills/enter", amount=str(amount))
    assert cost_answers.costs(OCTOBER, ("team",), now=NOW).rows[0].adjustment == "264.0000"
    line = next(line for line in done.context["months"] if line.month == "2026-10")
    assert (line.capacity, line.bill, line.difference) == (
        f"{CAPACITY:,.2f}",
        f"{amount:,.2f}",
        f"{amount - CAPACITY:+,.2f}",
    )


def test_the_share_that_bills_cover_is_that_of_rest(browser, operator):
    assert "No bill covers these months yet." in text(browser.get("/bills"))
    bills.enter_bill(operator, LOCAL, date(2026, 10, 1), "9000")
    page = text(browser.get("/bills"))
    query = "window=2025-11-01T00:00:00Z,2026-11-01T00:00:00Z&aggregate=cluster&accumulate=month"
    share = client(operator).get(f"/api/v1/costs?{query}").json()["billed_share"]
    assert f"<strong>Bills cover {round(100 * Decimal(share))} %</strong>" in page


def test_bills_show_what_capacity_is_made_of_with_what_nodes_cost_besides_gpus(browser, operator):
    """Two nodes at 9 an hour by AWS's weights, against eight GPUs at 1.10, of which two were held for ten days."""
    found = dict.fromkeys(("l40s-0", "l40s-1"), FoundNode(None, 64_000, 488 * 1024))
    node_intervals.record(LOCAL, dict.fromkeys(found, SEEN), found, OCTOBER.start)
    subject = CostSubject(Flavor.objects.get(name="l40s"), Term.ON_DEMAND)
    capacity_services.set_node_cost(SYSTEM, subject, "9", NodeCost.Per.NODE, "aws", "EUR", OCTOBER.start)
    rollups.roll_up(LOCAL, OCTOBER.start, OCTOBER.end)
    answer = browser.get("/bills")
    costs = {part.name.partition(" (")[0]: Decimal(part.cost.replace(",", "")) for part in answer.context["parts"]}
    capacity, rest = costs.pop("Capacity"), costs["Node costs other than GPUs"]
    assert (capacity, costs["Charged to holders"]) == (Decimal(2 * 9 * 31 * 24), Decimal(528))
    assert answer.context["parts"][-1].share == "100.0"
    assert rest > 0 > costs["Price variance"]
    assert abs(sum(costs.values()) - capacity) < Decimal("0.05")
    query = "window=2026-10-01,2026-11-01&aggregate=all&idle=separate"
    [row] = client(operator).get(f"/api/v1/costs?{query}").json()["results"]
    assert round(Decimal(row["node_rest"]), 2) == rest
    assert "<caption>Capacity cost by part" in text(answer)


def test_public_list_prices_are_shown_with_day_and_source_and_are_applied_by_nobody(browser, team):
    member, before = browser_of(person(team)), counts()
    page = text(browser.get("/prices/public"))
    assert "55.04 USD" in page
    assert "2026-11-09" in page
    assert "data-receipts 109-gpu-pricing/hyperscalers.json" in page
    assert "/prices/node-costs/set" not in page
    assert "The amounts of this portal are in EUR." in page
    assert "Nothing here is applied" in text(member.get("/prices/public"))
    assert counts() == before


def test_a_public_list_price_fills_in_the_form_of_a_node_cost_where_its_currency_is_the_portals(browser, team):
    Price.objects.all()._raw_delete("default")
    page = browser.get("/prices/public")
    [line] = [one for one in page.context["lines"] if one.price.instance == "p5.48xlarge"]
    form = browser.get(f"/prices/node-costs/set?{line.form}")
    assert [field.value() for field in form.context["form"]][1:6] == ["on-demand", "node", "55.04", None, "USD"]
    assert "aws p5.48xlarge as of 2026-11-09" in text(form)
    assert not NodeCost.objects.exists()
    assert "/prices/node-costs/set" not in text(browser_of(person(team)).get("/prices/public"))


@pytest.mark.parametrize(
    ("path", "values", "back"),
    [
        ("/prices/set", {"valid_from": "2026-12-12T00:00"}, "/prices"),
        ("/prices/node-costs/set", {"valid_from": "2026-12-12T00:00"}, "/prices"),
        ("/prices/node-terms/set", {"valid_from": "2026-12-12T00:00"}, "/prices"),
        ("/bills/fixed-costs/set", {"month": "2026-12"}, "/bills"),
    ],
)
def test_what_is_scheduled_has_a_button_to_withdraw_it(browser, path, values, back):
    before = counts()
    page = text(confirmed(browser, path, **values))
    [address] = set(re.findall(r'href="(/prices/[a-z-]+/\d+/withdraw)"', page))
    assert "Nothing was charged by it" in text(browser.get(address))
    assert "Withdrawn: the " in text(browser.post(address, follow=True))
    assert counts()[:-1] == before[:-1]
    assert "/withdraw" not in text(browser.get(back))
    assert browser.post(address).status_code == 404


def test_what_has_begun_has_no_button_and_is_refused(browser):
    price = Price.objects.get(flavor__name="l40s")
    assert "/withdraw" not in text(browser.get("/prices"))
    refused = browser.get(f"/prices/price/{price.pk}/withdraw")
    assert (refused.status_code, "it replaces this one" in text(refused)) == (409, True)


def test_who_sets_no_prices_is_not_shown_how_to_withdraw_them(browser, team):
    confirmed(browser, "/prices/set", valid_from="2026-12-12T00:00")
    assert "/withdraw" not in text(browser_of(person(team)).get("/prices"))


def test_a_bill_of_a_month_that_is_not_wholly_recorded_says_so(browser):
    page = text(preview(browser, "/bills/enter", month="2026-08"))
    assert "is not known" in page


def test_of_several_bills_of_a_month_the_newest_counts_and_all_are_shown(browser, operator):
    for amount in ("9000", "9500"):
        bills.enter_bill(operator, LOCAL, date(2026, 10, 1), amount)
    assert [(line.amount, line.state) for line in browser.get("/bills").context["lines"]] == [
        ("9,500.00 EUR", "current"),
        ("9,000.00 EUR", "replaced"),
    ]
    assert preview(browser, "/bills/enter").context["effect"].changes[0].before == "9,500.00 EUR"


def test_fixed_costs_have_their_history(browser, operator):
    bills.set_shared_cost(operator, "support", date(2026, 10, 1), "600", "even", teams=["vision", "language"])
    bills.set_shared_cost(operator, "support", date(2026, 12, 1), "0", "weighted")
    assert [(line.value, line.note, line.state) for line in browser.get("/bills").context["fixed"]] == [
        ("ended", "in proportion to GPU cost", "scheduled"),
        ("600.00 EUR a month", "evenly between language, vision", "in force"),
    ]


def test_a_fixed_cost_that_is_set_is_in_costs(browser):
    confirmed(browser, "/bills/fixed-costs/set", month="2026-11", split="even", amount="600")
    used(NOW - HOUR, NOW)
    start = T0.replace(day=1)
    rows = cost_answers.costs(Window(start, NOW), ("team",), now=NOW).rows
    assert abs(Decimal(rows[0].shared_cost or 0) - Decimal(300 * ((NOW - start) / (30 * DAY)))) < Decimal("0.001")


def test_the_proof_says_since_when_the_ledger_is_balanced_and_which_rows_fail(browser):
    record(RESOURCES, 0)
    for number in range(3):
        proofs.prove(LOCAL, hour(number))
    assert "Balanced since" in text(browser.get("/costs/proof"))
    failure = {
        **{"check": "parts", "cluster": LOCAL, "flavor": "l40s", "node": "l40s-0", "name": "nvidia.com/gpu"},
        **{"expected": "4", "found": "5", "message": "The parts of l40s-0 do not add up."},
    }
    BalanceProof.objects.filter(hour=hour(1)).update(balanced=False, failures=[failure], failure_count=1)
    page = browser.get("/costs/proof")
    assert "The parts of l40s-0 do not add up." in text(page)
    assert "1 hour is not balanced." in text(page)
    assert [(line.hour, line.is_balanced) for line in page.context["lines"]] == [
        (hour(2), True),
        (hour(1), False),
        (hour(0), True),
    ]
    assert len(browser.get("/costs/proof?failing=1").context["lines"]) == 1


def test_hours_of_the_proof_are_those_of_rest(browser, operator):
    used(hour(0), hour(1), 3)
    for number in range(2):
        proofs.prove(LOCAL, hour(number))
    lines = browser.get("/costs/proof?window=7d").context["lines"]
    rows = client(operator).get("/api/v1/costs/proof?window=7d").json()["results"]
    names = ("held", "unmanaged", "unavailable", "stranded", "idle", "variance")
    assert [[amount for _, amount in line.amounts] for line in lines] == [
        [f"{Decimal(row[name]):,.2f}" for name in names] for row in rows
    ]
    assert [line.capacity for line in lines] == ["8.00", "8.00"]


def test_a_window_that_is_none_is_refused_and_only_to_who_may_see_the_proof(browser, team):
    answer = browser.get("/costs/proof?window=nonsense")
    assert (answer.status_code, "is not a valid window" in text(answer)) == (400, True)
    assert browser_of(person(team)).get("/costs/proof?window=nonsense").status_code == 403
