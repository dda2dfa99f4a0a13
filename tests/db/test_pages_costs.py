"""The costs page: a view is an address, and nobody sees another team."""

import re
from datetime import timedelta
from decimal import Decimal
from random import Random
from urllib.parse import parse_qs, urlsplit

import pytest

from portal.core import clock
from quotas.costs import filter_grammar, rollups, saved_views
from quotas.metering.hold_use import Sighting, recorded_from
from tests.support import cost_questions
from tests.support.capacity import RESOURCES, record
from tests.support.clusters import LOCAL
from tests.support.cost_questions import of_rest
from tests.support.fleet import fleet as two_teams
from tests.support.page_tables import figures, tables
from tests.support.pages import browser_of, held, requested, text, without_tokens
from tests.support.people import client, person
from tests.support.quotas import hour, used
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
WINDOW = "2026-11-02T00:00:00Z,2026-11-09T00:00:00Z"


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
        ({"when": "custom", "first": "", "last": "soon"}, "is not a valid time"),
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


def test_labels_split_and_filter_rows_and_weeks_start_on_a_chosen_day(fleet, browser):
    for app, stage in (("train", "prod"), ("train", "test"), ("serve", "prod")):
        used(hour(0), hour(2), labels={"app": app, "stage": stage})
    sent = {"when": WINDOW, "by": "team", "then_label": "app", "week_start": "sunday", "accumulate": "week"}
    sent |= {"key": "label", "op": ":", "value": "stage=prod,dev"}
    page = browser.get("/costs", sent, follow=True)
    assert page.context["address"]["filter"] == 'label[stage]:"prod","dev"'
    assert [chip.text for chip in page.context["chips"]] == ["Label stage is prod or dev"]
    assert [line.name for line in page.context["lines"]] == ["vision / serve", "vision / train"]
    assert [step.label for step in page.context["chart"].steps] == ["week of 2026-11-02", "week of 2026-11-08"]
    assert '<option value="sunday" selected>Sunday</option>' in text(page)


@pytest.mark.parametrize(
    "wrong", [{"filter": "team:"}, {"value": 'a"b'}, {"key": "label", "value": "prod"}, {"timezone": "Nowhere"}]
)
def test_a_refused_form_keeps_what_was_chosen(fleet, browser, wrong):
    sent = {"when": "90d", "by": "team", "then": "flavor", "idle_view": "owner", "cost": "daily", "accumulate": "week"}
    sent |= {"week_start": "sunday", "key": "member", "op": "!:", "value": "ada", "then_label": "", **wrong}
    answer = browser.get("/costs", sent, follow=True)
    assert answer.status_code == 400
    fields = answer.context["fields"]
    kept = sent if "timezone" not in wrong else {**sent, "key": "team", "op": ":", "value": ""}
    for name in ("when", "by", "then", "idle_view", "cost", "accumulate", "week_start", "key", "op"):
        assert fields[name].value == kept[name], name
    assert fields["given"]["value"] == kept["value"]
    if "filter" in wrong:
        assert answer.context["address"]["filter"] == "team:"


def test_values_of_the_rows_are_suggested_for_a_filter_of_the_same_key(fleet, browser):
    used(hour(0), hour(2), member="ada", labels={"app": "train"})
    used(hour(0), hour(2), member="", labels={})
    page = browser.get("/costs", {"window": WINDOW, "aggregate": "member,label:app"})
    assert page.context["suggestions"] == {"ada": "Person", "app=train": "Label app"}
    assert '<option value="ada">Person</option>' in text(page)
    assert page.context["fields"]["key"].value == "member"


def test_the_largest_changes_are_first_whether_cost_rose_or_fell(fleet, browser):
    for member, before, now in (("fell", 9, 1), ("rose", 1, 5), ("same", 2, 2)):
        used(hour(-24), hour(-24 + before), member=member)
        used(hour(0), hour(now), member=member)
    window = "2026-11-02T00:00:00Z,2026-11-03T00:00:00Z"
    page = browser.get("/costs", {"window": window, "aggregate": "member", "sort": "change"})
    assert [line.name for line in page.context["lines"]] == ["fell", "rose", "same"]
    assert "GPU-hours and cost by person, sorted by change" in text(page)


def test_of_many_rows_the_largest_have_a_series_and_a_trend_and_the_rest_is_others(fleet, browser, monkeypatch):
    monkeypatch.setattr("frontend.views.costs.MAX_TREND_ROWS", 9)
    for number in range(12):
        for day in range(2):
            used(hour(24 * day), hour(24 * day + 1 + number / 10), member=f"person-{number:02}", project="vision-train")
    used(hour(0), hour(1), member="", project="vision-train")
    rollups.roll_up(LOCAL, hour(0), hour(20))
    view = {"window": WINDOW, "aggregate": "member,project"}
    page = browser.get("/costs", view)
    names = [f"person-{number:02}" for number in range(11, -1, -1)]
    chart, lines = page.context["chart"], page.context["lines"]
    assert [one.name.split(" / ")[0] for one in chart.series] == [*names[:7], "6 others"]
    assert [line.name.split(" / ")[0] for line in lines if line.trend] == names[:9]
    assert "show the 9 rows with the highest cost" in text(page)
    monkeypatch.undo()
    whole = browser.get("/costs", view).context["chart"]
    assert chart.series == whole.series
    for shown, expected in zip(chart.steps, whole.steps, strict=True):
        assert shown.total == expected.total
        for amount, exact in zip(shown.amounts, expected.amounts, strict=True):
            assert abs(amount - exact) <= Decimal("0.0002")


def test_mine_is_one_link_and_back(fleet, member, team, project, browser):
    other = person(team)
    held(requested(member, project, name="own"), hours=1)
    held(requested(other, project, name="theirs"), hours=1)
    page = browser.get("/costs?aggregate=member")
    assert {line.name for line in page.context["table"].lines} == {member.username, other.username}
    own = browser.get(page.context["mine"])
    assert [line.name for line in own.context["table"].lines] == [member.username]
    assert own.context["is_mine"]
    assert re.search(r'<a class="button" href="[^"]*">\s*<svg.*?</svg> All people</a>', text(own))
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
    assert "of its GPUs, without bills and fixed costs" in text(page)
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
    assert "/costs/fleet" in text(auditor.get("/costs/savings"))
    assert "GPU-hours of the fleet" in text(auditor.get("/costs/fleet"))


def test_rows_beyond_fifty_are_on_further_pages(fleet, member, browser):
    for number in range(53):
        used(hour(0), hour(1 + number / 10), member=f"person-of-{number}", project="vision-train")
    first = browser.get("/costs", {"window": WINDOW, "aggregate": "member"})
    assert "1 to 50 of 53" in text(first)
    last = browser.get(first.context["next_page"])
    assert "51 to 53 of 53" in text(last)
    assert last.context["table"].total == first.context["table"].total


def test_a_page_of_costs_takes_the_same_queries_for_one_row_and_for_fifty(fleet, browser):
    used(hour(0), hour(2), member="ada")

    def grow():
        for number in range(49):
            used(hour(0), hour(2), member=f"person-of-{number}")

    assert_constant(lambda: browser.get("/costs", {"window": WINDOW, "aggregate": "member"}), grow, at_most=25)


def test_a_view_is_saved_for_the_team_and_opened_by_a_colleague(fleet, team, browser):
    view = browser.get("/costs?window=lastmonth&aggregate=member&sort=change")
    sent = {"name": "Who used more", "query": view.context["query"], "team": "vision"}
    done = browser.post("/costs/views", sent, follow=True)
    assert "View Who used more saved for team vision." in text(done)
    [link] = browser_of(person(team, "viewer")).get("/costs").context["saved"]
    assert (link.name, link.whose, link.may_delete) == ("Who used more", "team vision", False)
    assert browser.get(link.url).context["address"] == view.context["address"]
    open_view = {"query": "window=today&aggregate=team"}
    deleted = browser.post(f"/costs/views/{link.id}/delete", open_view, follow=True)
    assert deleted.context["saved"] == []
    assert deleted.context["query"] == browser.get("/costs?window=today&aggregate=team").context["query"]


def test_own_views_are_listed_first_and_never_cut_off_by_those_of_teams(fleet, member, team, browser, monkeypatch):
    monkeypatch.setattr("frontend.presenters.costs_saved.MAX_SHOWN", 3)
    colleague = person(team)
    for number in range(3):
        saved_views.save(colleague, f"A shared one {number}", "window=7d", team)
    for name in ("My first", "My second"):
        saved_views.save(member, name, "window=7d")
    page = browser.get("/costs")
    assert [link.name for link in page.context["saved"]] == ["My first", "My second", "A shared one 0"]
    assert "Only the first 3 are listed." in text(page)


def test_a_view_that_cannot_be_saved_says_why(fleet, browser):
    for _ in range(2):
        done = browser.post("/costs/views", {"name": "Mine", "query": "window=7d"}, follow=True)
    assert "You have a saved view Mine already. Use another name, or delete it first." in text(done)
    done = browser.post("/costs/views", {"name": "x", "query": "window=x"}, follow=True)
    assert "is not a valid window" in text(done)
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
