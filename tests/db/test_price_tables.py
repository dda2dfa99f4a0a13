"""Prices, costs and terms as CSV: an export can be imported, a dry run imports nothing, and neither does an error."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from portal.core import clock
from portal.core.errors import Forbidden, Invalid
from portal.core.models import AuditEntry
from quotas.costs import price_tables, public_prices
from quotas.costs.models import NodeCost, NodeTerm, Price
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
    return tuple(model.objects.count() for model in (Price, NodeCost, NodeTerm, AuditEntry))


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


def test_one_error_imports_nothing_and_each_says_what_is_wrong(operator):
    before = counts()
    wrong = [
        ("price,l40s,,-1,,,,,", "from 0 to"),
        ("price,none,,1,,,,,", "no flavor none"),
        ("cost,l40s,,1,,,,,", "Give a term"),
        ("term,local/x,spot,,,,,,", "no GPU node x"),
        ("none,x,,,,,,,", "Use one of price, cost, term"),
        (f"price,l40s,,1,,,USD,{AT},", "two currencies"),
        (f"price,l40s,,1,,,,,{'x' * 201}", "at most 200"),
    ]
    done = price_tables.import_table(operator, TABLE + "\n".join(line for line, _ in wrong), dry_run=False)
    assert results(done) == ["created"] * 6 + ["error"] * 7
    for row, (_, words) in zip(done.rows[6:], wrong, strict=True):
        assert words in row.message, row
    assert (done.is_applied, counts()) == (False, before)


def test_what_is_exported_is_what_was_imported(operator):
    price_tables.import_table(operator, TABLE, dry_run=False)
    exported = price_tables.export_table(operator)
    lines = exported.splitlines()
    assert len(lines) == 9
    assert 'cost,h100,on-demand,20,node,aws,EUR,2026-11-03T00:00:00Z,"AWS, list"' in lines
    assert "cost,local/l40s-1,,1.5,node,1:0.5:9,EUR,2026-11-03T00:00:00Z," in lines
    assert results(price_tables.import_table(operator, exported, dry_run=False)) == ["unchanged"] * 8


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
    with pytest.raises(CommandError, match="none is"):
        call_command("prices", "import", str(file), "--as", operator.username, stdout=StringIO())
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
