"""The cost beside what it is of: a person's, a team's and a project's month, and an allocation by day, as REST says."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.test import Client

from frontend.presenters.amounts import forecast_range
from portal.core import clock, heartbeat
from portal.tenants.models import Project, Team, User
from quotas.costs import bills, rollups
from quotas.metering import hold_use
from quotas.metering import services as metering
from quotas.metering.hold_use import Sighting
from quotas.metering.hours import DAY, HOUR
from tests.support.capacity import RESOURCES, record
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.pages import HTMX, browser_of, ended, held, text
from tests.support.people import client, person
from tests.support.queued import GPU, job
from tests.support.quotas import T0, attribution, used
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def now(team: Team, other_team: Team) -> Iterator[datetime]:
    with clock.frozen(NOW) as at:
        fleet(team, other_team)
        heartbeat.beat("worker")
        heartbeat.beat("watcher")
        yield at


@pytest.fixture
def browser(member: User) -> Client:
    return browser_of(member)


def rest(user: User, path: str, **query: str) -> Any:
    return client(user).get(f"/api/v1/{path}?{urlencode(query)}").json()


def shown(amount: str | None) -> str:
    """Return an amount of REST as pages show it."""
    assert amount is not None
    value = Decimal(amount)
    return f"{value:,.2f}"


def month_of(user: User, *, days: int = 16, hours: float = 8, **values: Any) -> None:
    """Use one GPU for some hours on each of the last days, and roll them up."""
    for day in range(1, days + 1):
        start = NOW.replace(hour=0) - day * DAY
        used(start, start + hours * HOUR, member=user.username, **values)
    rollups.roll_up(LOCAL, NOW.replace(hour=0) - (days + 1) * DAY, NOW.replace(hour=0))


def test_home_loads_the_cost_after_it_is_shown_and_has_a_link_without_scripts(browser):
    page = text(browser.get("/"))
    assert 'hx-get="/costs/mine" hx-trigger="load, rows-changed from:body"' in page
    assert '<a href="/costs/mine">' in page
    assert "<html" in text(browser.get("/costs/mine"))
    assert "<html" not in text(browser.get("/costs/mine", headers=HTMX))


def test_home_loads_the_cost_anew_once_other_allocations_run(member, project, browser):
    row = held(allocate(member, project), hours=1)
    was = browser.get("/").context["held"]
    assert "rows-changed" not in browser.get(f"/?held={was}", headers=HTMX).headers.get("HX-Trigger-After-Settle", "")
    ended(row)
    assert "rows-changed" in browser.get(f"/?held={was}", headers=HTMX).headers["HX-Trigger-After-Settle"]


def test_the_month_and_its_forecast_are_those_of_rest(member, project, browser):
    month_of(member, hours=8.3)
    held(allocate(member, project, hours=4), hours=1)
    page = text(browser.get("/costs/mine"))
    query = {"window": "month", "aggregate": "all", "filter": f'member:"{member.username}"'}
    assert f"<strong>{shown(rest(member, 'costs', **query)['total'])} EUR</strong>" in page
    found = rest(member, "costs/forecast", window="month", member=member.username)
    assert found["reason"] is None
    assert f"<strong>{shown(found['total'])} EUR</strong>" in page
    assert forecast_range(found["low"], found["total"], found["high"], "EUR") in page


def test_a_forecast_that_is_unknown_says_why(member, browser):
    month_of(member, days=3)
    assert "Unknown: 3 days of history, 14 are needed." in text(browser.get("/costs/mine"))


def test_fixed_costs_are_in_the_month_and_in_the_forecast(member, browser):
    record(RESOURCES, (NOW - 30 * DAY - T0) / HOUR)
    month_of(member, days=20)
    bills.set_shared_cost(person(platform_role="operator"), "network", NOW.date().replace(day=1), "300", "weighted")
    page = text(browser.get("/costs/mine"))
    [row] = rest(member, "costs", window="month", aggregate="all")["results"]
    assert f"with {shown(row['shared_cost'])} EUR of fixed costs" in page
    found = rest(member, "costs/forecast", window="month")
    assert Decimal(found["shared_cost"]) > 0
    assert f"<strong>{shown(found['total'])} EUR</strong>" in page


def test_while_fixed_costs_are_not_known_the_month_is_shown_without_them(member, browser):
    month_of(member)
    bills.set_shared_cost(person(platform_role="operator"), "network", NOW.date().replace(day=1), "300", "weighted")
    page = text(browser.get("/costs/mine"))
    [row] = rest(member, "costs", window="month", aggregate="all")["results"]
    assert (row["total"], row["shared_cost"]) == (None, None)
    assert f"<strong>{shown(row['cost'])} EUR</strong>" in page
    assert "without bills and fixed costs, which are not known yet" in page


def test_what_runs_has_its_cost_at_its_end_as_rest_says(member, project, browser):
    first = held(allocate(member, project, hours=4), hours=1)
    second = held(allocate(member, project, "h100/whole", 2, hours=10), hours=2)
    allocate(member, project)
    page = text(browser.get("/costs/mine"))
    at_end = [rest(member, f"costs/allocations/{row.pk}")["cost_at_end"] for row in (first, second)]
    per_hour = [rest(member, f"allocations/{row.pk}")["cost"]["per_hour"] for row in (first, second)]
    assert at_end == ["4.4000", "64.0000"]
    assert f"<strong>{shown(str(sum(map(Decimal, per_hour))))} EUR per hour</strong>" in page
    assert f"<strong>{shown(str(sum(map(Decimal, at_end))))} EUR</strong>" in page
    for amount in at_end:
        assert f'<td data-label="Cost at its end" class="number">{shown(amount)} EUR</td>' in page


def test_sums_are_of_all_running_allocations_though_not_all_are_listed(member, project, browser, monkeypatch):
    monkeypatch.setattr("frontend.presenters.my_cost.MAX_RUNNING", 1)
    held(allocate(member, project, hours=4), hours=1)
    held(allocate(member, project, "h100/whole", 2, hours=10), hours=2)
    page = text(browser.get("/costs/mine"))
    assert "<strong>68.40 EUR</strong>" in page
    assert page.count('<td data-label="Cost at its end"') == 1
    assert "The newest 1 of 2 running allocations. The sums above are of all 2." in page


def test_what_has_no_price_is_not_priced(member, browser):
    from quotas.costs.models import Price

    assert Price.objects.exists()
    used(NOW - HOUR, None, member=member.username, flavor="new", offering="new/whole")
    assert "not priced" in text(browser.get("/costs/mine"))


def test_it_takes_as_many_statements_for_thirty_allocations_as_for_one(member, project, browser):
    def grow() -> None:
        for _ in range(29):
            row = allocate(member, project, starts_at=(NOW + DAY).isoformat())
            held(row, hours=1)

    held(allocate(member, project), hours=1)
    assert_constant(lambda: browser.get("/costs/mine", headers=HTMX), grow, at_most=25)


@pytest.mark.parametrize("path", ["teams/vision", "projects/vision-train"])
@pytest.mark.parametrize("key", ["member", "offering"])
def test_the_month_of_a_team_and_a_project_is_by_person_and_offering_as_in_rest(member, project, path, key):
    month_of(member, hours=8.3)
    month_of(person(project.team), days=5, offering="h100/whole", flavor="h100")
    used(NOW - 5 * HOUR, None, member="", project=project.slug)
    used(NOW - 5 * HOUR, None, team="language", project="language-dev", member="eve")
    page = text(browser_of(member).get(f"/{path}/costs"))
    kind = "team" if path.startswith("teams") else "project"
    where = f'{kind}:"{path.partition("/")[2]}"'
    answer = rest(member, "costs", window="month", aggregate=key, filter=where)
    assert len(answer["results"]) == {"member": 3, "offering": 2}[key]
    for row in answer["results"]:
        name = "Jobs submitted with kubectl" if row["name"] == "__unallocated__" else row["name"]
        assert f">{name}</a></th>" in page
        assert f'<td data-label="Cost" class="number">{shown(row["total"])}' in page
    assert f"<strong>{shown(answer['total'])} EUR</strong>" in page
    assert "eve" not in page


@pytest.mark.parametrize("path", ["teams/vision", "projects/vision-train"])
def test_a_month_takes_as_many_statements_for_thirty_people_as_for_one(member, project, path):
    browser = browser_of(member)

    def grow() -> None:
        for number in range(49):
            used(NOW - HOUR, NOW, member=f"someone-{number}", project=project.slug)

    used(NOW - HOUR, NOW, member="someone", project=project.slug)
    assert_constant(lambda: browser.get(f"/{path}/costs", headers=HTMX), grow, at_most=25)


def test_of_many_people_those_with_the_highest_cost_are_shown_and_the_others_as_one_line(member, project):
    for number in range(25):
        used(NOW - (number + 1) * HOUR, NOW, member=f"someone-{number}")
    page = text(browser_of(member).get("/teams/vision/costs"))
    assert "someone-24" in page
    assert "someone-4<" not in page
    assert '<th scope="row">5 more</th>' in page
    assert f"{Decimal('1.1') * sum(range(1, 6)):.2f}" in page


def test_days_of_an_allocation_are_those_of_rest(member, project, browser):
    row = held(allocate(member, project, hours=400), hours=60)
    page = text(browser.get(f"/allocations/{row.pk}/costs", headers=HTMX))
    answer = rest(
        member,
        "costs",
        window=f"{NOW - 60 * HOUR:%Y-%m-%dT%H:%M:%SZ},{NOW:%Y-%m-%dT%H:%M:%SZ}",
        aggregate="allocation",
        accumulate="day",
        filter=f'allocation:"{row.pk}"',
    )
    days = [(day["window"]["start"][:10], shown(day["total"])) for day in answer["results"]]
    assert days == [("2026-11-18", "26.40"), ("2026-11-19", "26.40"), ("2026-11-20", "13.20")]
    for day, cost in days:
        assert f'<time datetime="{day}">{day}</time>' in page
        assert f'<td data-label="Cost" class="number">{cost}</td>' in page
        assert f"<title>{day}: {cost} EUR</title>" in page
    assert f'<td data-label="Cost" class="number">{shown(answer["total"])}</td>' in page


def test_days_are_those_of_the_readers_zone(member, project, browser):
    row = held(allocate(member, project, hours=400), hours=13)
    browser.cookies["timezone"] = "Asia/Tokyo"
    page = text(browser.get(f"/allocations/{row.pk}/costs", headers=HTMX))
    assert page.count("<time datetime") == 1
    assert 'datetime="2026-11-20"' in page


def test_of_a_long_hold_the_last_days_are_shown_and_the_csv_has_all(member, project, browser):
    row = held(allocate(member, project, hours=2000), hours=50 * 24)
    answer = browser.get(f"/allocations/{row.pk}/costs")
    assert len(answer.context["by_day"].days) == 31
    assert "The last 31 days." in text(answer)
    csv: Any = client(member).get(answer.context["csv_url"])
    lines = csv.getvalue().decode().splitlines()
    assert len(lines) == 1 + 51


def test_what_no_pod_of_a_job_used_is_that_of_rest(member, project):
    uid = job("train", project.namespace, conditions={}, cluster_queue="team-vision", usage={"l40s": {GPU: 2}})
    for unused, hours in ((True, 3), (False, 5)):
        by = attribution(team="vision", project=project.slug, member="", namespace=project.namespace, unused=unused)
        metering.open_interval(uuid4(), uid, f"local/job:{uid}/{unused}", NOW - hours * HOUR, by, 1, {})
    page = text(browser_of(member).get(f"/jobs/{uid}/costs"))
    rows = rest(member, f"costs/allocations/{uid}")["results"]
    cost = sum(Decimal(row["cost"]) for row in rows if row["unused"])
    assert f"<strong>3.00 GPU-hours, {cost:.2f} EUR</strong>, were reserved for the Job and used by no pod of it." in page


def test_what_no_pod_of_an_allocation_used_is_that_of_rest(member, project, browser):
    row = held(allocate(member, project, hours=400), hours=60)
    hold_use.recorded_from(LOCAL, Sighting(NOW - 70 * HOUR, 0, estimated=True))
    for start, end in ((60, 40), (30, 12)):
        hold_use.begin(LOCAL, [row.pk], Sighting(NOW - start * HOUR, 1, estimated=False))
        hold_use.end(LOCAL, [row.pk], Sighting(NOW - end * HOUR, 2, estimated=False))
    answer = browser.get(f"/allocations/{row.pk}/costs", headers=HTMX)
    body = client(member).get(answer.context["evidence_url"]).json()
    assert (body["unused_gpu_hours"], body["unused_cost"]) == ("22.000000", "24.2000")
    page = text(answer)
    assert "<strong>22.00 GPU-hours, 24.20 EUR</strong>, were held while it had no pod." in page
    days = [("2026-11-18", "4.00", "4.40"), ("2026-11-19", "6.00", "6.60"), ("2026-11-20", "12.00", "13.20")]
    assert [(day, unused.gpu_hours, unused.cost) for day, _, unused in answer.context["by_day"].days] == days
    assert [tuple(day.values()) for day in body["unused_by_day"]] == [
        (day, f"{Decimal(hours):.6f}", f"{Decimal(cost):.4f}") for day, hours, cost in days
    ]
    for _, hours, cost in days:
        assert f'<td data-label="Unused GPU-hours" class="number">{hours}</td>' in page
        assert f'<td data-label="Unused cost" class="number">{cost}</td>' in page
    assert '<td data-label="Unused cost" class="number">24.20</td>' in page


def test_a_hold_that_had_a_pod_all_the_time_says_so(member, project, browser):
    row = held(allocate(member, project), hours=1)
    hold_use.begin(LOCAL, [row.pk], Sighting(NOW - HOUR, 1, estimated=False))
    assert "It had at least one pod the whole time it was held." in text(browser.get(f"/allocations/{row.pk}/costs"))


def test_a_hold_whose_pods_were_not_recorded_says_so(member, project, browser):
    row = held(allocate(member, project), hours=1)
    answer = browser.get(f"/allocations/{row.pk}/costs")
    assert "Unused cost is not known" in text(answer)
    assert answer.context["by_day"].unused.cost == "not recorded"


def test_the_costs_of_another_teams_allocation_are_not_there(member, project, other_team):
    row = held(allocate(member, project), hours=1)
    stranger = person(other_team)
    assert browser_of(stranger).get(f"/allocations/{row.pk}/costs").status_code == 404
    assert client(stranger).get(f"/api/v1/costs/allocations/{row.pk}").status_code == 404


def test_what_holds_nothing_yet_costs_nothing(member, project, browser):
    row = allocate(member, project)
    assert "Nothing was held yet" in text(browser.get(f"/allocations/{row.pk}/costs"))
    assert "You have no running allocations." in text(browser.get("/costs/mine"))


def test_another_teams_costs_are_not_found(member, project: Project, other_team):
    row = held(allocate(member, project), hours=1)
    stranger = browser_of(person(other_team, "lead"))
    for path in ("teams/vision", f"projects/{project.slug}", f"allocations/{row.pk}", f"jobs/{uuid4()}"):
        assert stranger.get(f"/{path}/costs").status_code == 404, path


def test_pages_of_a_team_a_project_and_an_allocation_load_their_cost(member, project):
    row = held(allocate(member, project), hours=timedelta(hours=1) / HOUR)
    lead = browser_of(person(project.team, "lead"))
    for path in ("teams/vision", f"projects/{project.slug}", f"allocations/{row.pk}"):
        assert f'hx-get="/{path}/costs"' in text(lead.get(f"/{path}")), path
    assert 'href="/projects/vision-train/costs"' in text(lead.get("/teams/vision"))
