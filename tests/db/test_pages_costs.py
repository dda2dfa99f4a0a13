"""The costs page: its numbers are those of REST, a view is an address, and nobody sees another team."""

import csv
import re
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from html import escape, unescape
from io import StringIO
from random import Random
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.core import clock
from quotas.costs import filter_grammar, rollups, seeds
from quotas.costs.idle_views import IdleBy, IdleSplit
from quotas.metering.hold_use import Sighting, recorded_from
from quotas.metering.units import RESOURCE, FoundUnit, Unit
from tests.support import cost_questions
from tests.support.capacity import RESOURCES, record
from tests.support.clusters import LOCAL
from tests.support.cost_questions import DAYS
from tests.support.fleet import fleet as two_teams
from tests.support.page_tables import figures, tables
from tests.support.pages import browser_of, held, requested, text
from tests.support.people import client, person
from tests.support.quotas import cluster, hour, used

pytestmark = pytest.mark.django_db
QUESTIONS = 100
CENT = Decimal("0.01")
WINDOW = "2026-11-02T00:00:00Z,2026-11-09T00:00:00Z"
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
    seeds.price()
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


def of_rest(api, view, **more):
    """Return all rows of REST for a view, and its sums."""
    question = {name: value for name, value in view.items() if name not in ("accumulate", "sort")}
    body = page = api.get("/api/v1/costs", question | more).json()
    while page["next"]:
        page = api.get(page["next"]).json()
        body["results"] += page["results"]
    return body


def differs(cell, exact):
    """Return whether a cell does not show this amount: exactly behind it, and rounded by less than a cent."""
    shown = Decimal(cell.text.removeprefix("+").split()[0])
    return cell.value != exact or abs(shown - Decimal(exact)) >= CENT


def without_tokens(response):
    """Return a page without what differs each time it is made: the tokens of its forms."""
    return re.sub(r'name="csrfmiddlewaretoken" value="[^"]*"', "", text(response))


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
        assert len(rows) == min(len(rest["results"]), 100), view
        for one, line in zip(page.context["lines"], shown.rows if shown else [], strict=True):
            [row] = [each for each in rest["results"] if each["name"] == one.row.name]
            assert not differs(line[3], row["gpu_hours"]), view
            assert not differs(line[4], row["total"]), view
            assert not differs(line[5], row["change"]), view
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


def test_a_filter_that_is_read_and_written_keeps_the_same():
    for seed in range(300):
        written, _ = cost_questions.some_filter(Random(seed), 3)
        where = filter_grammar.parse(written)
        assert filter_grammar.parse(filter_grammar.text(where)) == where


def test_what_the_form_sends_becomes_the_address_of_the_view(fleet, browser):
    sent = {
        "when": "custom",
        "first": "2026-11-01",
        "last": "2026-11-07",
        "timezone": "Europe/Berlin",
        "by": "team",
        "then": "flavor",
        "idle_view": "owner",
        "cost": "daily",
        "accumulate": "week",
        "filter": 'kind:"whole"',
        "key": "project",
        "op": "!:",
        "value": "vision-dev, vision-old",
    }
    answer = browser.get("/costs", sent)
    assert answer.status_code == 302
    assert {name: one for name, (one,) in parse_qs(urlsplit(answer["Location"]).query).items()} == {
        "window": "2026-11-01,2026-11-08",
        "timezone": "Europe/Berlin",
        "aggregate": "team,flavor",
        "filter": 'kind:"whole"+project!:"vision-dev","vision-old"',
        "idle": "owner",
        "cost": "daily",
        "accumulate": "week",
    }
    page = browser.get(answer["Location"])
    assert [chip.text for chip in page.context["chips"]] == [
        "Slice kind is whole",
        "Project is not vision-dev or vision-old",
    ]


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"when": "custom", "first": "2026-11-07", "last": "2026-11-01"}, "It ends before it starts."),
        ({"when": "custom", "first": "", "last": "soon"}, "is no time"),
        ({"when": "7d", "filter": "team:"}, "Column 6"),
        ({"when": "7d", "key": "team", "op": ":", "value": 'a"b'}, "No filter can have a value with a quotation mark"),
        ({"when": "7d", "timezone": "Nowhere"}, "Use a name such as Europe/Berlin"),
        ({"when": "7d", "by": "moon"}, "moon cannot be used"),
        ({"when": "365d", "accumulate": "hour"}, "Choose a longer step"),
    ],
)
def test_what_cannot_be_answered_says_what_can(fleet, browser, sent, sentence):
    answer = browser.get("/costs", sent, follow=True)
    assert answer.status_code == 400
    assert sentence in text(answer).replace("&#x27;", "'").replace("&quot;", '"')


def test_mine_is_one_link_and_back(fleet, member, team, project, browser):
    other = person(team)
    held(requested(member, project, name="own"), hours=1)
    held(requested(other, project, name="theirs"), hours=1)
    page = browser.get("/costs?aggregate=member")
    assert {line.name for line in page.context["table"].lines} == {member.username, other.username}
    own = browser.get(page.context["mine"])
    assert [line.name for line in own.context["table"].lines] == [member.username]
    assert own.context["is_mine"]
    assert browser.get(own.context["mine"]).context["chips"] == []


def test_each_row_leads_to_its_parts_until_the_evidence(fleet, member, project, browser):
    row = held(requested(member, project, name="training"), hours=1)
    address, names = "/costs?aggregate=department", []
    for _ in range(5):
        page = browser.get(address)
        [line] = page.context["table"].lines
        names.append(line.name)
        address = line.url
    assert names == ["research", "vision", "vision-train", member.username, "vision-train / training"]
    assert address == f"/costs/allocations/{row.pk}"
    page = text(browser.get(address))
    assert "Costs of vision-train / training" in page
    assert "Start: test" in page
    assert "held now" in page


def test_the_costs_of_an_allocation_are_those_of_rest(fleet, member, project, browser):
    row = held(requested(member, project, count=3), hours=7 / 3)
    with clock.frozen(clock.now()) as now:
        recorded_from(LOCAL, Sighting(now - timedelta(hours=3), 0, estimated=True))
        rest = client(member).get(f"/api/v1/costs/allocations/{row.pk}").json()
        page = browser.get(f"/costs/allocations/{row.pk}")
    context = page.context
    assert (context["cost"], context["gpu_hours"]) == (rest["cost"], rest["gpu_hours"])
    assert rest["unused_cost"] == rest["cost"]
    for amount in ("unused_cost", "unused_gpu_hours"):
        assert f'<data value="{rest[amount]}">' in text(page)
    [line], [one] = context["lines"], rest["results"]
    assert str(line.interval.cost) == one["cost"]


def test_an_allocation_that_held_nothing_yet_has_no_costs(fleet, member, project, browser):
    row = requested(member, project)
    assert "It has not held anything yet" in text(browser.get(f"/costs/allocations/{row.pk}"))


def test_nothing_on_the_page_tells_of_another_team(fleet, member, project, other_team, browser):
    """The other team's use changes no figure, name, chart, error or address, whatever the filter names."""
    now = clock.now()
    held(requested(member, project), hours=2)
    views = [
        {},
        {"aggregate": "team,flavor"},
        {"aggregate": "member", "idle": "owner"},
        {"filter": 'team:"language"'},
        {"filter": 'team:"nowhere"'},
        {"window": "month", "filter": 'member:"alan"'},
        {"window": "today", "aggregate": "offering", "cost": "hourly"},
    ]
    with clock.frozen(now):
        before = [without_tokens(browser.get("/costs", view)) for view in views]
        hidden = used(now - timedelta(days=3), None, 2, team="language", project="language-train", member="alan")
        after = [without_tokens(browser.get("/costs", view)) for view in views]
        assert after == before
        assert browser.get(f"/costs/allocations/{hidden.holder_id}").status_code == 404
    both = [page.replace("language", "nowhere") for page in after]
    assert both[3] == both[4]


@pytest.mark.parametrize("idle", ["separate", "share"])
def test_a_member_who_asks_for_the_idle_of_the_fleet_is_told_what_may_be_chosen(fleet, browser, idle):
    answer = browser.get(f"/costs?idle={idle}")
    assert answer.status_code == 403
    assert "Use idle=hide, or idle=owner" in text(answer)
    assert list(answer.context["fields"]["idle_view"].options) == ["hide", "owner"]


def test_the_fleet_is_for_platform_staff_and_linked_for_them_alone(fleet, browser):
    assert browser.get("/costs/fleet").status_code == 403
    assert "/costs/fleet" not in text(browser.get("/costs"))
    auditor = browser_of(person(platform_role="auditor"))
    assert "/costs/fleet" in text(auditor.get("/costs"))
    assert "GPU-hours of the fleet" in text(auditor.get("/costs/fleet"))


def test_the_forecast_is_loaded_after_the_page_and_is_that_of_rest(fleet, member, project, browser):
    now = clock.now().replace(hour=12)
    for day in range(1, 21):
        used(now - timedelta(days=day, hours=3), now - timedelta(days=day), member=member.username)
    with clock.frozen(now):
        for view in ("filter=project:vision-train", "filter=kind:whole"):
            page = text(browser.get(f"/costs?window=month&{view}"))
            [later] = map(unescape, re.findall(r'id="tile-forecast" hx-get="([^"]*)"', page))
            assert f'<a href="{escape(later)}">Show the forecast</a>' in page
            rest = client(member).get(f"/api/v1/costs/forecast?{view}").json()
            for shown in (browser.get(later), browser.get(later, headers={"HX-Request": "true"})):
                assert figures(text(shown))["forecast"].value == rest["total"]
        assert text(shown).startswith('<div class="card" id="tile-forecast">')
        assert "forecast" not in figures(text(browser.get("/costs?window=lastmonth")))


@pytest.mark.parametrize(
    ("view", "words"),
    [
        ("window=lastmonth", "a period that has begun and has not ended"),
        ("window=month&cost=hourly", "not for a rate"),
        ("window=month", "days of history, 14 are needed"),
    ],
)
def test_a_view_without_a_forecast_says_why(fleet, browser, view, words):
    assert words in text(browser.get(f"/costs/forecast?{view}"))


def test_a_forecast_of_a_question_that_cannot_be_read_is_refused_with_its_field(fleet, browser):
    answer = browser.get("/costs/forecast?window=yesterdy")
    assert answer.status_code == 400
    assert "yesterdy" in text(answer)


@pytest.mark.parametrize("aggregate", ["project", "allocation,project"])
def test_the_table_and_its_chart_read_the_usage_once(fleet, browser, aggregate):
    for number in range(210):
        used(hour(number % 5), hour(number % 5 + 1), member=f"person-{number}")
    with CaptureQueriesContext(connection) as caught:
        page = browser.get(f"/costs?window={WINDOW}&aggregate={aggregate}")
    assert len(page.context["chart"].steps) > 1
    assert len([one for one in caught.captured_queries if "crowding AS" in one["sql"]]) == 2  # and the period before


def test_rows_beyond_a_hundred_are_on_further_pages(fleet, member, browser):
    for number in range(103):
        used(hour(0), hour(1 + number / 10), member=f"person-of-{number}", project="vision-train")
    first = browser.get("/costs", {"window": WINDOW, "aggregate": "member"})
    assert "1 to 100 of 103" in text(first)
    last = browser.get(first.context["next_page"])
    assert "101 to 103 of 103" in text(last)
    assert last.context["table"].total == first.context["table"].total


def test_a_page_of_costs_takes_the_same_queries_for_one_row_and_for_fifty(
    fleet, browser, django_assert_max_num_queries
):
    used(hour(0), hour(2), member="ada")
    view = {"window": WINDOW, "aggregate": "member"}
    browser.get("/costs", view)
    with django_assert_max_num_queries(40) as first:
        browser.get("/costs", view)
    for number in range(49):
        used(hour(0), hour(2), member=f"person-of-{number}")
    with django_assert_max_num_queries(len(first)):
        browser.get("/costs", view)


def test_a_view_is_saved_for_the_team_and_opened_by_a_colleague(fleet, team, browser):
    view = browser.get("/costs?window=lastmonth&aggregate=member&sort=change")
    sent = {"name": "Who used more", "query": view.context["query"], "team": "vision"}
    done = browser.post("/costs/views", sent, follow=True)
    assert "View Who used more saved for team vision." in text(done)
    [link] = browser_of(person(team, "viewer")).get("/costs").context["saved"]
    assert (link.name, link.whose, link.may_delete) == ("Who used more", "team vision", False)
    assert browser.get(link.url).context["address"] == view.context["address"]
    browser.post(f"/costs/views/{link.id}/delete")
    assert browser.get("/costs").context["saved"] == []


def test_a_view_that_cannot_be_saved_says_why(fleet, browser):
    for _ in range(2):
        done = browser.post("/costs/views", {"name": "Mine", "query": "window=7d"}, follow=True)
    assert "You have a saved view Mine already. Use another name, or delete it first." in text(done)
    assert "is no window" in text(browser.post("/costs/views", {"name": "x", "query": "window=x"}, follow=True))
    assert browser.post("/costs/views", {"name": "x", "query": "", "team": "language"}).status_code == 404


@pytest.fixture
def capacity(team, other_team):
    """Record ten hours of 8 l40s at 1.10, of which vision holds one and language two."""
    two_teams(team, other_team)
    with clock.frozen(hour(10)):
        record(RESOURCES, 0)
        used(hour(0), hour(10), 1)
        used(hour(2), hour(10), 2, team="language", project="language-train")
        yield


@pytest.mark.parametrize(
    "idle", [{}, {"idle": "hide"}, {"idle": "owner"}, {"idle": "share", "idle_by": "flavor", "idle_split": "even"}]
)
@pytest.mark.parametrize("aggregate", ["team", "flavor", "all"])
def test_idle_cost_is_that_of_rest_in_figure_table_and_chart(capacity, idle, aggregate):
    auditor = person(platform_role="auditor")
    view = {"window": f"{hour(0):%FT%TZ},{hour(10):%FT%TZ}", "aggregate": aggregate} | idle
    page, api = browser_of(auditor).get("/costs", view), client(auditor)
    rows = of_rest(api, view)["results"]
    total = sum((Decimal(row["idle_cost"]) for row in rows), Decimal(0))
    shown, chart = figures(text(page)), tables(text(page))["amounts"]
    if idle == {"idle": "hide"}:
        assert "idle" not in shown
        assert "Idle" not in chart.heads
        return
    assert total > 50
    assert Decimal(shown["idle"].value) == total
    assert {line.row.name: line.row.idle_cost for line in page.context["lines"]} == {
        row["name"]: row["idle_cost"] for row in rows
    }
    by_hour = of_rest(api, view, accumulate="hour")["results"]
    place = chart.heads.index("Idle")
    assert sum(Decimal(line[place].value) for line in chart.rows) == sum(Decimal(row["idle_cost"]) for row in by_hour)


def test_idle_cost_that_is_not_known_is_not_shown_as_nothing(fleet):
    used(hour(0), hour(10), 1)
    page = browser_of(person(platform_role="auditor")).get("/costs", {"window": WINDOW})
    assert figures(text(page))["idle"].text == "not known"
    assert page.context["table"].idle is None


def test_a_member_sees_what_is_idle_of_the_own_teams_quota(capacity, team):
    page = browser_of(person(team)).get("/costs", {"window": f"{hour(0):%FT%TZ},{hour(10):%FT%TZ}", "idle": "owner"})
    rest = of_rest(client(person(team)), {"window": f"{hour(0):%FT%TZ},{hour(10):%FT%TZ}", "idle": "owner"})
    assert figures(text(page))["idle"].value == str(sum(Decimal(row["idle_cost"]) for row in rest["results"]))
    assert "language" not in text(page)
