"""Prices, costs and terms as CSV: an export can be imported, a dry run imports nothing, and neither does an error."""

import csv
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from portal.core import clock
from portal.core.errors import Forbidden, Invalid
from portal.core.models import AuditEntry
from quotas.costs import price_tables, public_prices
from quotas.costs.models import NodeCost, NodeTerm, Price
from quotas.metering.models import DirtyHour
from tests.support.fleet import fleet
from tests.support.people import person
from tests.support.quotas import hour

pytestmark = pytest.mark.django_db
AT = "2026-11-03T00:00:00Z"
TABLE = f"""kind,of,term,amount,per,split,currency,valid_from,source
price,l40s,,1.30,gpu,,EUR,{AT},contract
price,h100/whole,,3,slice,,EUR,{AT},
cost,l40s,spot,0.60,gpu,,EUR,{AT},
cost,h100,on-demand,20,node,aws,EUR,{AT},"AWS, list"
cost,local/l40s-1,,1.5,node,1:0.5:9,EUR,{AT},
term,local/l40s-0,reserved,,,,,{AT},
"""


@pytest.fixture(autouse=True)
def at_ten(db: None):
    fleet()
    with clock.frozen(hour(10)):
        yield


@pytest.fixture
def operator():
    return person(platform_role="operator")


def counts() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (Price, NodeCost, NodeTerm, AuditEntry, DirtyHour))


def results(done) -> list[str]:
    return [row.result for row in done.rows]


def test_a_table_is_imported_and_once_more_changes_nothing(operator):
    done = price_tables.import_table(operator, TABLE, dry_run=False)
    assert (results(done), done.is_applied) == (["created"] * 6, True), done
    assert (Price.objects.count(), NodeCost.objects.count(), NodeTerm.objects.count()) == (4, 3, 1)
    before = counts()
    assert results(price_tables.import_table(operator, TABLE, dry_run=False)) == ["unchanged"] * 6
    assert counts() == before


def test_a_dry_run_says_the_same_and_leaves_nothing(operator):
    before = counts()
    done = price_tables.import_table(operator, TABLE, dry_run=True)
    assert (results(done), done.is_applied, counts()) == (["created"] * 6, False, before)


def test_one_error_imports_nothing_and_each_says_what_is_wrong_in_which_column(operator):
    before = counts()
    wrong = [
        ("price,l40s,,-1,,,,,", "amount", "Give a number from 0 to"),
        ("price,l40s,,,,,,,", "amount", "Give a decimal number"),
        ("price,h100/whole,,many,,,,,", "amount", "Give a decimal number"),
        ("price,none,,1,,,,,", "of", "There is no flavor none"),
        ("price,l40s,,1,node,,,,", "per", "A flavor's price is per gpu"),
        ("price,l40s,,1,,,,tomorrow,", "valid_from", "is not a valid time"),
        ("price,l40s,,1,,,,2026-01-02T00:00:00Z,", "valid_from", "cannot change what was charged"),
        ("cost,l40s,,1,,,,,", "term", "Give a term"),
        ("cost,l40s,rented,1,,,,,", "term", "Use one of on-demand"),
        ("cost,l40s,spot,1,node,half,,,", "split", "Use one of gpus"),
        ("term,local/x,spot,,,,,,", "of", "There is no GPU node x"),
        ("none,x,,,,,,,", "kind", "Use one of price, cost, term"),
        (f"price,l40s,,1,,,USD,{AT},", "currency", "All prices are in EUR"),
        (f"price,l40s,,1,,,,,{'x' * 201}", "source", "Give at most 200"),
        (f"price,l40s,,1.40,gpu,,EUR,{AT},", "", "l40s has another price from"),
    ]
    done = price_tables.import_table(operator, TABLE + "\n".join(line for line, _, _ in wrong), dry_run=False)
    assert results(done) == ["created"] * 6 + ["error"] * len(wrong)
    for number, (row, (_, column, words)) in enumerate(zip(done.rows[6:], wrong, strict=True), start=8):
        assert (row.line, row.column, words in row.message) == (number, column, True), row
    assert (done.is_applied, counts()) == (False, before)


@pytest.mark.parametrize("source", ["=1+1", "+1", "-2", "@SUM(A1)", "'=1+1", "''-2", "'quoted'", "2 = 2"])
def test_no_text_of_an_export_is_a_formula_and_an_import_reads_it_back(operator, source):
    row = {**dict.fromkeys(price_tables.COLUMNS, ""), "kind": "price", "of": "l40s", "amount": "1.3", "source": source}
    price_tables.import_table(operator, price_tables.as_csv([row]), dry_run=False)
    assert Price.objects.latest("valid_from").source == source
    cells = [cell for line in csv.reader(StringIO(price_tables.export_table(operator))) for cell in line]
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]
    assert source in {cell.removeprefix("'") for cell in cells} | set(cells)


def test_what_is_exported_is_what_was_imported(operator):
    price_tables.import_table(operator, TABLE, dry_run=False)
    exported = price_tables.export_table(operator)
    lines = exported.splitlines()
    assert len(lines) == 9
    assert 'cost,h100,on-demand,20,node,aws,EUR,2026-11-03T00:00:00Z,"AWS, list"' in lines
    assert "cost,local/l40s-1,,1.5,node,1:0.5:9,EUR,2026-11-03T00:00:00Z," in lines
    assert results(price_tables.import_table(operator, exported, dry_run=False)) == ["unchanged"] * 8


def test_a_history_is_imported_into_a_portal_that_has_none(operator):
    for model in (Price, NodeCost, NodeTerm):
        model.objects.all()._raw_delete("default")
    history = (
        "kind,of,term,amount,per,valid_from\n"
        "price,l40s,,1.10,gpu,2026-01-01T00:00:00Z\nprice,l40s,,1.20,gpu,2026-05-01T00:00:00Z\n"
        "price,l40s,,1.30,gpu,2027-01-01T00:00:00Z\n"
        "price,l40s/whole,,1,slice,2026-02-01T00:00:00Z\nprice,l40s/whole,,0.9,slice,2026-03-01T00:00:00Z\n"
        "cost,l40s,spot,0.6,gpu,2026-01-01T00:00:00Z\ncost,l40s,spot,0.5,gpu,2026-02-01T00:00:00Z\n"
        "cost,local/l40s-1,,1.5,node,2026-02-01T00:00:00Z\ncost,local/l40s-1,,1.4,node,2026-03-01T00:00:00Z\n"
        "term,local/l40s-0,reserved,,,2026-01-01T00:00:00Z\nterm,local/l40s-0,spot,,,2026-06-01T00:00:00Z\n"
    )
    done = price_tables.import_table(operator, history, dry_run=False)
    assert (results(done), [row.line for row in done.rows]) == (["created"] * 11, list(range(2, 13))), done
    again = price_tables.import_table(operator, price_tables.export_table(operator), dry_run=False)
    assert results(again) == ["unchanged"] * 11


@pytest.mark.parametrize(
    "text", ["", "kind\nprice\n", "kind,of,colour\n", "kind,of,of\n", "kind,of\nprice,l40s,3,4\n", "kind,of\x00\n"]
)
def test_what_is_no_table_is_refused(operator, text):
    with pytest.raises(Invalid):
        price_tables.import_table(operator, text, dry_run=True)


def test_members_import_and_export_nothing(team):
    member = person(team)
    with pytest.raises(Forbidden):
        price_tables.import_table(member, TABLE, dry_run=True)
    with pytest.raises(Forbidden):
        price_tables.export_table(member)


def test_the_command_imports_and_exports(operator, tmp_path):
    file = tmp_path / "prices.csv"
    file.write_text(TABLE)
    out = StringIO()
    call_command("prices", "import", str(file), "--as", operator.username, "--dry-run", stdout=out)
    assert "this was a dry run" in out.getvalue()
    call_command("prices", "import", str(file), "--as", operator.username, stdout=out)
    out = StringIO()
    call_command("prices", "export", "--as", operator.username, stdout=out)
    assert out.getvalue() == price_tables.export_table(operator)
    file.write_text("kind,of,amount\nprice,l40s,x\n")
    out = StringIO()
    with pytest.raises(CommandError, match="none is"):
        call_command("prices", "import", str(file), "--as", operator.username, stdout=out)
    assert "line 2, column amount: error: Give a decimal number" in out.getvalue()
    with pytest.raises(CommandError, match="no person"):
        call_command("prices", "export", "--as", "nobody")


def test_public_prices_are_dated_have_sources_and_are_applied_by_nobody():
    listed = public_prices.listed()
    assert len(listed) >= 15
    assert all(one.source and one.per_node_hour > 0 and one.gpus > 0 for one in listed)
    assert {one.instance: one.per_gpu_hour for one in listed if one.region == "eu-north-1"}
    assert not NodeCost.objects.exists()


def test_public_prices_can_be_imported_where_their_currency_is_that_of_the_portal(operator):
    out = StringIO()
    call_command("prices", "public", "--instance", "p5.48xlarge", "--flavor", "h100", stdout=out)
    assert "two currencies" in price_tables.import_table(operator, out.getvalue(), dry_run=True).rows[0].message
    Price.objects.all()._raw_delete("default")
    assert results(price_tables.import_table(operator, out.getvalue(), dry_run=False)) == ["created"]
    assert NodeCost.objects.get().source.startswith("aws p5.48xlarge")
