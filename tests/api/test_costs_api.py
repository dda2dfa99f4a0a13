from datetime import timedelta
from decimal import Decimal

import pytest

from portal.core import clock
from quotas.costs.models import Price
from tests.support.fleet import SINCE, fleet
from tests.support.people import client, person
from tests.support.quotas import hour, used

pytestmark = pytest.mark.django_db
URL = "/api/v1/costs"
WINDOW = "2026-11-02T00:00:00Z,2026-11-03T00:00:00Z"


@pytest.fixture
def member(team, other_team):
    fleet(team, other_team)
    used(hour(0), hour(2), member="ada")
    used(hour(1), hour(2), 2, member="grace", project="vision-dev")
    used(hour(0), hour(10), team="language", project="language-train")
    return person(team)


@pytest.fixture
def api(member):
    return client(member)


def rows(api, query):
    return {row["name"]: row for row in api.get(f"{URL}?window={WINDOW}&{query}").json()["results"]}


def test_a_row_has_every_column_as_a_decimal_string(api):
    body = api.get(f"{URL}?window={WINDOW}").json()
    window = {"start": "2026-11-02T00:00:00Z", "end": "2026-11-03T00:00:00Z"}
    assert (body["currency"], body["unpriced_gpu_hours"], body["window"]) == ("EUR", "0", window)
    assert body["results"][0] == {
        "name": "vision-dev",
        "window": window,
        "gpu_hours": "2.000000",
        "unpriced_gpu_hours": "0",
        "cost": "2.2000",
        "idle_cost": "0",
        "stranded_cost": "0",
        "unavailable_cost": "0",
        "unmanaged_cost": "0",
        "variance": "0",
        "unpriced_idle_gpu_hours": "0",
        "price_variance": "0",
        "node_rest": "0",
        "idle_adjustment": "0",
        "idle_shared_cost": "0",
        "adjustment": "0",
        "shared_cost": "0",
        "total": "2.2000",
        "currency": "EUR",
        "properties": {"project": "vision-dev"},
        "previous": None,
        "change": None,
    }


def test_what_has_no_price_has_no_cost_and_its_hours_say_so(api):
    def at(n):
        return SINCE + timedelta(hours=n)

    used(at(-1), at(1), project="vision-train")
    used(at(0), at(2), project="vision-dev")
    used(at(-1), at(0), project="vision-other")
    body = api.get(f"{URL}?window=2025-12-31,2026-01-02").json()
    columns = ("name", "gpu_hours", "unpriced_gpu_hours", "cost", "total")
    assert [tuple(row[column] for column in columns) for row in body["results"]] == [
        ("vision-dev", "2.000000", "0", "2.2000", "2.2000"),
        ("vision-train", "2.000000", "1.000000", "1.1000", "1.1000"),
        ("vision-other", "1.000000", "1.000000", None, None),
    ]
    assert body["unpriced_gpu_hours"] == "2.000000"


def test_the_last_seven_days_by_project_are_the_default(api):
    with clock.frozen(hour(12)):
        body = api.get(URL).json()
    assert body["window"] == {"start": "2026-10-27T00:00:00Z", "end": "2026-11-03T00:00:00Z"}
    assert {row["name"] for row in body["results"]} == {"vision-train", "vision-dev"}


def test_another_teams_costs_are_not_seen(api):
    assert set(rows(api, "aggregate=team")) == {"vision"}
    for text in ('team:"language"', 'team:"vision"|team:"language"', 'team!:"vision"|project:"language-train"'):
        assert set(rows(api, f"aggregate=team&filter={text}")) <= {"vision"}


def test_auditors_see_all(member):
    assert set(rows(client(person(platform_role="auditor")), "aggregate=team")) == {"vision", "language"}


def test_keys_are_joined_by_a_slash(api):
    assert set(rows(api, "aggregate=team,member")) == {"vision/ada", "vision/grace"}


@pytest.mark.parametrize(
    "text",
    [
        *('project:"vision-dev"', "project:vision-dev", "member:grace%2Bkind:whole", "member:grace+kind:whole"),
        *('project!:"vision-train"', 'project~:"dev"', 'project<~:"vision-d"', 'project~>:"-dev"', 'member!~>:"da"'),
        '(member:"nobody"|project:"vision-dev")+team:"vision"',
    ],
)
def test_a_filter_keeps_what_it_names(api, text):
    assert set(rows(api, f"filter={text}")) == {"vision-dev"}


def test_days_one_by_one(api):
    query = "window=2026-11-01,2026-11-04&accumulate=false&aggregate=team"
    found = api.get(f"{URL}?{query}").json()["results"]
    assert [row["window"]["start"] for row in found] == ["2026-11-02T00:00:00Z"]


@pytest.mark.parametrize(
    ("query", "starts"),
    [
        ("accumulate=hour", ["2026-11-02T00:00:00Z", "2026-11-02T01:00:00Z"]),
        ("accumulate=day&timezone=America/New_York", ["2026-11-01T04:00:00Z"]),
        ("accumulate=hour&timezone=Asia/Kolkata", [f"2026-11-0{n}:30:00Z" for n in ("1T23", "2T00", "2T01")]),
        ("accumulate=week", ["2026-11-02T00:00:00Z"]),
        ("accumulate=week&week_start=sunday", ["2026-11-01T00:00:00Z"]),
        ("accumulate=month", ["2026-11-01T00:00:00Z"]),
        ("accumulate=all", ["2026-10-26T00:00:00Z"]),
    ],
)
def test_steps_begin_by_the_calendar_that_is_chosen(api, query, starts):
    zone = "&timezone=UTC" if "timezone" not in query else ""
    window = "2026-10-26T00:00:00Z,2026-11-20T00:00:00Z"
    found = api.get(f"{URL}?window={window}&aggregate=team&{query}{zone}").json()["results"]
    assert [row["window"]["start"] for row in found] == starts


def test_a_date_in_a_window_is_a_day_of_the_time_zone(api):
    body = api.get(f"{URL}?window=2026-10-25,2026-10-26&timezone=Europe/Berlin").json()
    assert body["window"] == {"start": "2026-10-24T22:00:00Z", "end": "2026-10-25T23:00:00Z"}


@pytest.mark.parametrize(
    "query",
    [
        *("window=soon", "window=2026-11-02,2026-11-01", "window=2026-11-02T00:00:00,2026-11-03", "window=%00"),
        *("aggregate=colour", "aggregate=label:", "accumulate=maybe", "idle=often", "timezone=Mars/Olympus"),
        *("week_start=someday", "accumulate=hour&window=3000d", "filter=team", "filter=x:y"),
    ],
)
def test_what_cannot_be_read_is_400_and_says_what_works(api, query):
    answer = api.get(f"{URL}?{query}")
    field = query.partition("=")[0]
    assert answer.status_code == 400
    assert answer.json()["errors"][field]


def test_prices_are_listed_for_everyone(api):
    found = api.get("/api/v1/prices?flavor=l40s").json()["results"]
    assert [(row["flavor"], Decimal(row["per_gpu_hour"]), row["currency"]) for row in found] == [
        ("l40s", Decimal("1.10"), "EUR")
    ]


def test_operators_set_a_price_from_now_on(member):
    answer = client(person(platform_role="operator")).post(
        "/api/v1/prices", {"flavor": "l40s", "per_gpu_hour": "1.25", "source": "contract"}, format="json"
    )
    assert answer.status_code == 201, answer.json()
    assert (answer.json()["per_gpu_hour"], answer.json()["currency"]) == ("1.25", "EUR")
    assert Price.objects.filter(flavor__name="l40s").count() == 2


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"flavor": "l40s"}, "per_gpu_hour"),
        ({"flavor": "nope", "per_gpu_hour": "1"}, "flavor"),
        ({"flavor": "l40s", "per_gpu_hour": "-1"}, "per_gpu_hour"),
        ({"flavor": "l40s", "per_gpu_hour": "NaN"}, "per_gpu_hour"),
        ({"flavor": "l40s", "per_gpu_hour": True}, "per_gpu_hour"),
        ({"flavor": "l40s", "per_gpu_hour": "1", "currency": "euro"}, "currency"),
        ({"flavor": "l40s", "per_gpu_hour": "1", "currency": "USD"}, "currency"),
        ({"flavor": "l40s", "per_gpu_hour": "1", "valid_from": "2026-01-02T00:00:00Z"}, "valid_from"),
        ({"flavor": "l40s", "per_gpu_hour": "1", "until": "2027-01-01T00:00:00Z"}, "until"),
    ],
)
def test_a_price_that_cannot_be_is_400_and_not_set(member, body, field):
    answer = client(person(platform_role="operator")).post("/api/v1/prices", body, format="json")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])
    assert Price.objects.count() == 2


def test_members_set_no_price(api, member):
    body = {"flavor": "l40s", "per_gpu_hour": "0"}
    assert api.post("/api/v1/prices", body, format="json").status_code == 403
    operator = person(platform_role="operator")
    assert client(operator, "read", "request").post("/api/v1/prices", body, format="json").status_code == 403


def test_a_client_of_opencost_is_answered_in_its_own_words(api):
    own = api.get(f"{URL}?window={WINDOW}&aggregate=namespace&accumulate=day&filter=cluster:local").json()
    seconds = "1793577600,1793664000"
    theirs = f"window={seconds}&aggregate=namespace&step=1d&resolution=1m&format=json&filterClusters=local"
    answer = api.get(f"{URL}?{theirs}&includeProportionalAssetResourceCosts=false&includeIdle=false")
    assert answer.status_code == 200, answer.json()
    assert answer.json()["results"] == own["results"] != []


@pytest.mark.parametrize(
    ("theirs", "sentence"),
    [
        ("filterPods=a", "filterPods: The ledger knows no pods."),
        ("format=csv", "format: Use json; /costs/export is CSV."),
        ("offset=5", "offset: Follow `next` of the answer."),
        ("minCost=1", "minCost: There is no such query parameter."),
    ],
)
def test_what_opencost_has_and_the_portal_has_not_is_told(api, theirs, sentence):
    answer = api.get(f"{URL}?{theirs}")
    assert (answer.status_code, answer.json()["detail"][: len(sentence)]) == (400, sentence)
