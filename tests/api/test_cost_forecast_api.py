"""GET /costs/forecast: what it answers, to whom, and that nobody learns of another team's use from it."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.core import clock
from portal.tenants.models import Project, Team, User
from quotas.costs import bills, rollups
from tests.support.capacity import RESOURCES, record
from tests.support.clusters import LOCAL
from tests.support.fleet import SINCE, fleet
from tests.support.people import client, person
from tests.support.quotas import T0, hour, used

pytestmark = pytest.mark.django_db
URL = "/api/v1/costs/forecast"
DAY = 24
NOVEMBER, DECEMBER = (datetime(2026, month, 1, tzinfo=T0.tzinfo) for month in (11, 12))
NOW = T0 + timedelta(days=20, hours=6)
AMOUNTS = ("posted", "committed", "shared_cost", "expected", "total", "low", "high")
SUMS = ("expected", "total", "low", "high")


@pytest.fixture(autouse=True)
def now(team: Team, other_team: Team, project: Project) -> Iterator[None]:
    fleet(team, other_team)
    with clock.frozen(NOW):
        yield


@pytest.fixture
def member(team: Team) -> User:
    return person(team)


@pytest.fixture
def api(member: User) -> APIClient:
    return client(member)


def record_capacity(since: float = -2 * DAY) -> None:
    """Record eight l40s, and roll up what was used of them."""
    record(RESOURCES, since)
    rollups.roll_up(LOCAL, hour(since), hour(20 * DAY))


def enter(split: str) -> None:
    """Enter a bill of October, and a fixed cost of 300 from November on."""
    operator = person(platform_role="operator")
    bills.enter_bill(operator, LOCAL, date(2026, 10, 1), "9000")
    bills.set_shared_cost(operator, "network", date(2026, 11, 1), "300", split)


def use_of_vision() -> None:
    """Three hours of each of 20 days, two GPUs on the last five, and one that runs."""
    for day in range(20):
        used(hour(day * DAY + 9), hour(day * DAY + 12), 2 if day > 14 else 1)
    used(hour(20 * DAY), None)


def use_of_language() -> None:
    for day in range(-30, 20):
        used(hour(day * DAY), hour(day * DAY + 20), 5, team="language", project="language-train", member="li")
    used(hour(-500), None, 2, team="language", project="language-train", member="li")


def body(api: APIClient, query: str = "") -> dict[str, Any]:
    answer = api.get(f"{URL}?{query}")
    assert answer.status_code == 200, answer.json()
    return dict(answer.json())


def test_the_total_is_the_sum_of_what_is_posted_committed_and_expected(api: APIClient) -> None:
    use_of_vision()
    found = body(api)
    assert found["window"] == {"start": "2026-11-01T00:00:00Z", "end": "2026-12-01T00:00:00Z"}
    assert (found["as_of"], found["timezone"], found["currency"]) == ("2026-11-22T06:00:00Z", "UTC", "EUR")
    assert (found["reason"], found["history_days"], found["is_complete"]) == (None, 20, True)
    amounts = {name: Decimal(found[name]) for name in AMOUNTS}
    assert amounts["total"] == amounts["posted"] + amounts["committed"] + amounts["expected"]
    assert amounts["posted"] <= amounts["low"] <= amounts["total"] <= amounts["high"]
    assert found["committed"] == f"{Decimal(24 * 9 - 6) * Decimal('1.1'):.4f}"


def test_what_is_posted_is_the_total_of_costs(api: APIClient) -> None:
    use_of_vision()
    costs = api.get("/api/v1/costs?window=month&aggregate=team").json()["results"]
    assert [body(api)["posted"]] == [row["total"] for row in costs]


@pytest.mark.parametrize("split", ["weighted", "even"])
def test_what_is_posted_is_the_total_of_costs_with_fixed_costs(api: APIClient, member: User, split: str) -> None:
    use_of_vision()
    used(hour(3 * DAY), hour(20 * DAY), 3, team="language", project="language-train", member="li")
    used(hour(19 * DAY), hour(19 * DAY + 7), 2, member=member.username, labels={"stage": "prod"})
    record_capacity()
    enter(split)
    queries = [
        "",
        "timezone=Asia/Kolkata",
        "window=week",
        'filter=team:"vision"',
        f'filter=member!:"{member.username}"',
    ]
    queries += ['filter=flavor:"l40s"%2Blabel[stage]:"prod"']
    for client_ in (api, client(person(platform_role="auditor"))):
        for query in queries:
            whole = client_.get(f"/api/v1/costs?{query}" + ("" if "window" in query else "&window=month")).json()
            assert body(client_, query)["posted"] == whole["total"] is not None, query
            assert sum(Decimal(row["shared_cost"]) for row in whole["results"]) > 0


def test_a_bill_of_a_month_in_the_window_is_posted(api: APIClient) -> None:
    used(hour(-5 * DAY), hour(5 * DAY), 2)
    record_capacity(-33 * DAY)
    before = body(api, "from=2026-10-01&until=2026-12-01")
    enter("weighted")
    found = body(api, "from=2026-10-01&until=2026-12-01")
    costs = api.get("/api/v1/costs?window=2026-10-01,2026-12-01&aggregate=all").json()
    assert Decimal(costs["results"][0]["adjustment"]) != 0
    assert found["posted"] == costs["total"] != before["posted"]


def test_fixed_costs_of_the_rest_go_on_at_the_pace_of_the_month(api: APIClient) -> None:
    use_of_vision()
    record_capacity()
    before = body(api)
    enter("even")
    found = body(api)
    shared = Decimal(api.get("/api/v1/costs?window=month&aggregate=all").json()["results"][0]["shared_cost"])
    elapsed = (NOW - NOVEMBER) / (DECEMBER - NOVEMBER)
    assert shared == round(150 * Decimal(elapsed), 4)
    assert Decimal(found["shared_cost"]) == 150 - shared
    assert Decimal(found["total"]) == Decimal(before["total"]) + 150
    assert Decimal(found["low"]) - Decimal(before["low"]) == Decimal(found["high"]) - Decimal(before["high"]) == 150


def test_while_fixed_costs_are_not_known_the_forecast_is_unknown_and_says_why(api: APIClient) -> None:
    use_of_vision()
    enter("weighted")
    found = body(api)
    assert api.get("/api/v1/costs?window=month").json()["total"] is None
    assert found["reason"] == "unknown: bills or fixed costs of the time until now are not known yet"
    assert {found[name] for name in ("posted", "shared_cost", *SUMS)} == {None}
    assert Decimal(found["committed"]) > 0


def test_under_14_days_it_is_unknown_and_says_why(api: APIClient) -> None:
    used(hour(10 * DAY), None)
    found = body(api)
    assert found["reason"] == "unknown: 10 days of history, 14 are needed"
    assert {name: found[name] for name in SUMS} == dict.fromkeys(SUMS)
    assert Decimal(found["posted"]) > 0 < Decimal(found["committed"])


def test_unpriced_hours_are_named_and_the_forecast_is_incomplete(api: APIClient) -> None:
    use_of_vision()
    used(hour(20 * DAY), hour(20 * DAY + 2), flavor="new", offering="new/whole")
    found = body(api)
    assert (found["unpriced_gpu_hours"], found["is_complete"]) == ("2.000000", False)


def test_what_has_no_price_at_all_is_unknown(api: APIClient) -> None:
    begin = (SINCE - T0) // timedelta(hours=1)
    for day in range(1, 20):
        used(hour(begin - day * DAY), hour(begin - day * DAY + 1))
    used(hour(begin - 10), None, flavor="new", offering="new/whole")
    with clock.frozen(SINCE - timedelta(hours=5)):
        found = body(api, "from=2025-12-20&until=2026-01-01")
    assert found["reason"] == "unknown: nothing that was used has a price"
    assert {name: found[name] for name in AMOUNTS} == dict.fromkeys(AMOUNTS) | {"shared_cost": "0.0000"}


def test_a_week_or_any_time_around_now_can_be_chosen(api: APIClient) -> None:
    assert body(api, "window=week")["window"] == {"start": "2026-11-16T00:00:00Z", "end": "2026-11-23T00:00:00Z"}
    chosen = body(api, "from=2026-11-20&until=2026-11-24T12:00:00%2B01:00&timezone=Europe/Berlin")
    assert chosen["window"] == {"start": "2026-11-19T23:00:00Z", "end": "2026-11-24T11:00:00Z"}


def test_a_month_is_that_of_the_time_zone(api: APIClient) -> None:
    found = body(api, "timezone=America/New_York")
    assert found["window"] == {"start": "2026-11-01T04:00:00Z", "end": "2026-12-01T05:00:00Z"}
    assert found["timezone"] == "America/New_York"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("window=7d", "window"),
        ("window=month&from=2026-11-01&until=2026-11-30", "window"),
        ("from=2026-11-01", "until"),
        ("until=2026-11-30", "from"),
        ("from=2026-11-23&until=2026-11-30", "from"),
        ("from=2026-11-01&until=2026-11-20", "until"),
        ("from=2026-11-01&until=2027-11-30", "until"),
        ("from=soon&until=2026-11-30", "from"),
        ("from=0001-01-01&until=2026-11-30&timezone=Asia/Tokyo", "from"),
        ("timezone=Mars/Olympus", "timezone"),
        ("timezone=%00", "timezone"),
        ("member=%00", "member"),
        ('filter=team:"vision', "filter"),
        ('filter=colour:"red"', "filter"),
    ],
)
def test_what_cannot_be_read_is_400_and_names_the_field(api: APIClient, query: str, field: str) -> None:
    answer = api.get(f"{URL}?{query}")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])


@pytest.mark.parametrize("query", ["team=language", "project=language-train", "department=none", "team=none"])
def test_what_one_must_not_see_is_404(api: APIClient, query: str) -> None:
    use_of_language()
    assert api.get(f"{URL}?{query}").status_code == 404


def test_a_person_of_another_team_is_404_as_one_whom_nobody_knows(api: APIClient, other_team: Team) -> None:
    stranger = person(other_team).username
    answers = [api.get(f"{URL}?member={name}") for name in (stranger, "x" * len(stranger))]
    assert [answer.status_code for answer in answers] == [404, 404]
    known, unknown = (answer.json()["detail"].replace(stranger, "x" * len(stranger)) for answer in answers)
    assert known == unknown


def test_a_member_sees_their_own_their_teams_and_their_projects(api: APIClient, member: User) -> None:
    use_of_vision()
    used(hour(20 * DAY), None, 3, member=member.username)
    whole = body(api)
    for query in ("team=vision", "project=vision-train", "department=research"):
        assert body(api, query) == whole
    assert Decimal(body(api, f"member={member.username}")["posted"]) == 3 * 6 * Decimal("1.1")


def test_platform_staff_see_the_fleet_and_each_team(api: APIClient) -> None:
    use_of_vision()
    use_of_language()
    auditor = client(person(platform_role="auditor"))
    teams = [body(auditor, f"team={team}") for team in ("vision", "language")]
    for name in ("posted", "committed"):
        assert sum(Decimal(found[name]) for found in teams) == Decimal(body(auditor)[name])
    assert teams[0]["total"] == body(api)["total"]


def test_who_is_in_no_team_has_no_history(api: APIClient) -> None:
    use_of_vision()
    assert body(client(person()))["reason"] == "unknown: 0 days of history, 14 are needed"


def test_what_another_team_does_changes_no_answer(api: APIClient, member: User) -> None:
    """Two worlds that differ in the other team alone: in the first it uses nothing, in the second a lot."""
    use_of_vision()
    queries = ["", "team=vision", "project=vision-train", f"member={member.username}", "department=research"]
    queries += [
        'filter=team:"vision","language"',
        'filter=flavor:"l40s"',
        'filter=member!:"ada"',
        'filter=label[x]:"y"',
    ]
    queries += ["window=week", "timezone=Asia/Kolkata", "team=language", "project=language-train", "member=li"]

    def answers() -> list[tuple[int, Any]]:
        found = [api.get(f"{URL}?{query}") for query in queries]
        return [(one.status_code, {**one.json(), "request_id": None}) for one in found]

    before = answers()
    use_of_language()
    assert answers() == before
    assert [status for status, _ in before] == [200] * 11 + [404] * 3
