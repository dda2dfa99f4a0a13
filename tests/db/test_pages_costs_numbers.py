"""The numbers of the costs page, its chart, its CSV and its saved views are those of REST, for random views."""

import csv
from decimal import Decimal
from fractions import Fraction
from io import StringIO
from random import Random
from typing import Any
from urllib.parse import parse_qsl

import pytest

from demo import prices
from frontend.views.costs import PAGE_ROWS
from quotas.costs import rollups
from quotas.costs.questions import IdleBy, IdleSplit
from quotas.metering.units import RESOURCE, FoundUnit, Unit
from tests.support import cost_questions
from tests.support.capacity import record
from tests.support.clusters import LOCAL
from tests.support.cost_questions import DAYS, of_rest
from tests.support.fleet import fleet as two_teams
from tests.support.page_tables import figures, tables
from tests.support.pages import browser_of, text
from tests.support.people import client, person
from tests.support.quotas import cluster, hour
from tests.support.sizes import size

pytestmark = pytest.mark.django_db
QUESTIONS = size(40, 100)
CENT = Decimal("0.01")
CAPACITY = (
    ("l40s", "nvidia.com/gpu", Fraction(1)),
    ("a100", "nvidia.com/mig-1g.10gb", Fraction(1, 7)),
    ("a100", "nvidia.com/mig-3g.40gb", Fraction(1, 2)),
)
"""More than all random use."""
IDLE = [{}, {"idle": "hide"}, {"idle": "owner"}]
IDLE_OF_ALL = [
    {"idle": "separate"},
    *({"idle": "share", "idle_by": by, "idle_split": how} for by in IdleBy for how in IdleSplit),
]


@pytest.fixture
def random_use(team, other_team, settings):
    settings.API_REQUESTS_PER_MINUTE = settings.PAGE_REQUESTS_PER_MINUTE = 1_000_000
    settings.PROCESSOR_SECONDS_PER_MINUTE = 1_000_000
    two_teams(team, other_team)
    cluster()
    prices.price()
    for flavor, resource, gpus in CAPACITY:
        record({Unit(f"{flavor}-0", RESOURCE, resource): FoundUnit(500, 500)}, -24 * DAYS, gpus=gpus)
    found = cost_questions.use(Random(17), 60)
    for start, end in ((0, 30), (31, 90), (100, 24 * DAYS)):
        rollups.roll_up(LOCAL, hour(start), hour(end))
    return found


def a_view(seed, *, sees_all=False):
    """Return the parameters of a random view, as an address has them."""
    random = Random(seed)
    query = cost_questions.question(random).query
    step = query.pop("accumulate")
    view = {name: value for name, value in query.items() if value}
    if step != "all":
        view["accumulate"] = step
    if random.random() < 0.3:
        view["cost"] = random.choice(["hourly", "daily", "monthly"])
    if random.random() < 0.3:
        view["sort"] = random.choice(["change", "gpu_hours", "name", "idle"])
    return view | random.choice([*IDLE, *(IDLE_OF_ALL if sees_all else ())])


def shown_amount(cell):
    words = cell.text.removeprefix("+").replace(",", "")
    return Decimal(0) if words.startswith("under") else Decimal(words.split()[0])


def differs(cell, exact):
    """Return whether a cell does not show this amount: exactly behind it, and rounded by less than a cent."""
    return cell.value != exact or abs(shown_amount(cell) - Decimal(exact)) >= CENT


@pytest.mark.parametrize("role", ["member", "auditor"])
def test_the_page_shows_the_numbers_of_rest_for_random_views(random_use, team, role):
    user = person(team) if role == "member" else person(platform_role="auditor")
    browser, api, seen, idle = browser_of(user), client(user), 0, Decimal(0)
    for seed in range(QUESTIONS // 2):
        view = a_view(seed, sees_all=role == "auditor")
        page = browser.get("/costs", view)
        assert page.status_code == 200, view
        rest = of_rest(api, view, compare="previous")
        shown = tables(text(page)).get("list ranked")
        rows = {row[0].text: row for row in shown.rows} if shown else {}
        assert len(rows) == min(len(rest["results"]), PAGE_ROWS), view
        for one, line in zip(page.context["lines"], shown.rows if shown else [], strict=True):
            [row] = [each for each in rest["results"] if each["name"] == one.row.name]
            assert not differs(line[3], row["gpu_hours"]), view
            assert not differs(line[4], row["total"]), view
            assert line[5].value == row["change"], view
            before = round(Decimal(row["previous"]["total"]), 2)
            assert shown_amount(line[5]) == shown_amount(line[4]) - before, view
            if page.context["shows_idle"]:
                assert (line[6].text == "not known") == (row["idle_cost"] is None), view
                assert row["idle_cost"] is None or not differs(line[6], row["idle_cost"]), view
                idle += Decimal(row["idle_cost"] or 0)
            else:
                assert len(line) == 6, view
        tiles = figures(text(page))
        assert not differs(tiles["period"], rest["total"]), view
        assert not differs(tiles["unpriced"], rest["unpriced_gpu_hours"]), view
        assert Decimal(tiles["change"].value) == Decimal(rest["total"]) - Decimal(rest["previous_total"]), view
        seen += len(rows)
    assert seen > QUESTIONS
    assert (idle > 0) == (role == "auditor")  # the team had no quota at the time


def test_the_chart_shows_the_numbers_of_rest_for_random_views(random_use, team):
    user = person(team)
    browser, api, drawn = browser_of(user), client(user), 0
    for seed in range(QUESTIONS // 2):
        view = a_view(seed)
        page = browser.get("/costs", view)
        if page.context["chart"] is None:
            continue
        step = page.context["chart"].step
        rest = of_rest(api, view, accumulate=step)["results"]
        chart = tables(text(page))["amounts"]
        named = {row["name"].replace("/", " / ").replace("__unallocated__", "not known"): row["name"] for row in rest}
        for line, found in zip(chart.rows, page.context["chart"].steps, strict=True):
            of_step = [row for row in rest if row["window"]["start"].startswith(f"{found.start:%Y-%m-%dT%H:%M:%S}")]
            total = sum((Decimal(row["total"]) for row in of_step), Decimal(0))
            assert Decimal(line[-1].value) == total, view
            for head, cell in zip(chart.heads[1:-1], line[1:-1], strict=True):
                if head in named:
                    expected = sum((Decimal(row["total"]) for row in of_step if row["name"] == named[head]), Decimal(0))
                    assert Decimal(cell.value) == expected, (view, head)
                    drawn += 1
    assert drawn > QUESTIONS


def test_the_csv_and_the_command_of_a_view_have_the_numbers_of_the_page(random_use, team):
    browser = browser_of(person(team))
    for seed in range(20):
        page = browser.get("/costs", a_view(seed))
        exported: Any = browser.get(page.context["csv"])
        lines = list(csv.DictReader(StringIO(b"".join(exported.streaming_content).decode())))
        table = page.context["table"]
        assert [line["total"] for line in lines] == sorted(
            (one.row.total for one in table.lines), key=Decimal, reverse=True
        )
        path = page.context["curl"].rpartition("127.0.0.1:8000")[2].rstrip("'")
        assert browser.get(path).json()["total"] == figures(text(page))["period"].value


def test_a_saved_view_has_the_numbers_of_its_page_and_of_rest(random_use, team):
    user = person(team)
    browser, api, pages = browser_of(user), client(user), {}
    for seed in range(20):
        page = pages[f"View {seed}"] = browser.get("/costs", a_view(seed))
        browser.post("/costs/views", {"name": f"View {seed}", "query": page.context["query"]})
    links = {link.name: link.url for link in browser.get("/costs").context["saved"]}
    queries = {row["name"]: row["query"] for row in api.get("/api/v1/saved-views").json()["results"]}
    assert links.keys() == queries.keys() == pages.keys()
    for name, page in pages.items():
        again = browser.get(links[name])
        assert figures(text(again)) == figures(text(page))
        assert [line.row for line in again.context["lines"]] == [line.row for line in page.context["lines"]]
        rest = of_rest(api, dict(parse_qsl(queries[name])))
        assert figures(text(again))["period"].value == rest["total"]
