"""GET /costs: labels, comparison, run-rates, pages, ETag, and the same numbers as CSV."""

import csv
from base64 import urlsafe_b64encode
from decimal import Decimal
from io import StringIO

import pytest

from portal.core import clock
from quotas.costs.models import Price
from tests.support.fleet import fleet
from tests.support.people import client, person
from tests.support.quotas import hour, used
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
URL = "/api/v1/costs"
DAY = "window=2026-11-02,2026-11-03"
ZERO = {"gpu_hours": "0.000000", "unpriced_gpu_hours": "0", "cost": "0.0000", "total": "0.0000"}


@pytest.fixture
def member(team, other_team):
    fleet(team, other_team)
    used(hour(0), hour(4), member="ada", labels={"app": "train"})
    used(hour(1), hour(2), 2, member="grace", project="vision-dev", labels={"app": "serve"})
    used(hour(-20), hour(-10), member="ada")
    used(hour(-5), hour(-4), member="alan", project="vision-old")
    used(hour(0), hour(10), team="language", project="language-train", labels={"app": "secret"})
    return person(team)


@pytest.fixture
def api(member):
    return client(member)


def get(api, query):
    answer = api.get(f"{URL}?{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_everything_in_one_row(api):
    body = get(api, f"{DAY}&aggregate=all")
    assert [(row["name"], row["properties"], row["total"]) for row in body["results"]] == [("all", {}, "6.6000")]
    assert (body["gpu_hours"], body["total"]) == ("6.000000", "6.6000")


def test_a_row_says_the_value_of_each_key(api):
    [row] = get(api, f"{DAY}&aggregate=offering,label:app&filter=member:ada")["results"]
    assert row["name"] == "l40s/whole/train"
    assert row["properties"] == {"offering": "l40s/whole", "label:app": "train"}


def test_another_teams_labels_are_not_seen(api):
    assert {row["name"] for row in get(api, f"{DAY}&aggregate=label:app")["results"]} == {"train", "serve"}
    assert get(api, f'{DAY}&aggregate=label:app&filter=label[app]~:"s"')["total"] == "2.2000"


def test_each_row_is_compared_with_the_day_before(api):
    body = get(api, f"{DAY}&aggregate=project&compare=previous")
    assert body["previous_window"] == {"start": "2026-11-01T00:00:00Z", "end": "2026-11-02T00:00:00Z"}
    assert (body["total"], body["previous_total"]) == ("6.6000", "12.1000")
    assert [(row["name"], row["total"], row["previous"]["total"], row["change"]) for row in body["results"]] == [
        ("vision-train", "4.4000", "11.0000", "-6.6000"),
        ("vision-dev", "2.2000", "0.0000", "2.2000"),
        ("vision-old", "0.0000", "1.1000", "-1.1000"),
    ]
    assert body["results"][1]["previous"] == ZERO


def test_a_window_that_has_not_ended_is_compared_with_as_much_of_the_one_before(api):
    with clock.frozen(hour(12)):
        body = get(api, "window=today&aggregate=all&compare=previous")
    assert body["previous_window"] == {"start": "2026-11-01T00:00:00Z", "end": "2026-11-01T12:00:00Z"}
    assert body["results"][0]["previous"]["gpu_hours"] == "8.000000"


def test_steps_are_compared_by_their_place(api):
    query = "window=2026-11-02,2026-11-04&accumulate=day&aggregate=all&compare=previous"
    assert [(row["window"]["start"][:10], row["previous"]["gpu_hours"]) for row in get(api, query)["results"]] == [
        ("2026-11-02", "0.000000"),
        ("2026-11-03", "11.000000"),
    ]


@pytest.mark.parametrize(
    ("metric", "total"), [("cumulative", "6.6000"), ("hourly", "0.2750"), ("daily", "6.6000"), ("monthly", "200.7500")]
)
def test_money_is_that_of_the_window_or_its_pace(api, metric, total):
    body = get(api, f"{DAY}&cost={metric}")
    assert body["total"] == total == f"{sum(Decimal(row['total']) for row in body['results'])}"
    assert body["gpu_hours"] == "6.000000"


def test_the_pace_of_a_window_that_has_not_ended_is_that_of_the_time_until_now(api):
    with clock.frozen(hour(12)):
        assert get(api, "window=today&cost=hourly")["total"] == "0.5500"


def test_pages_are_as_of_the_first_and_have_every_row_once(api):
    used(hour(0), None, member="alan")
    with clock.frozen(hour(12)):
        whole, page = (get(api, f"window=today&aggregate=member{limit}") for limit in ("", "&limit=1"))
    found = page["results"]
    with clock.frozen(hour(13)):
        while page["next"]:
            page = api.get(page["next"]).json()
            found += page["results"]
        back = api.get(page["previous"]).json()
    assert (found, page["total"]) == (whole["results"], whole["total"])
    assert (back["results"], len(found)) == (found[1:2], 3)


def cursor(*position):
    return urlsafe_b64encode("&".join(f"p={each}" for each in position).encode()).decode()


@pytest.mark.parametrize(
    "text",
    [
        *("x", "", cursor("1"), cursor("2026-11-02T12:00:00Z", "-1"), cursor("2999-01-01T00:00:00Z", "0")),
        *(cursor("yesterday", "0"), cursor("2026-11-02T12:00:00Z", "one"), urlsafe_b64encode(b"r=1").decode()),
    ],
)
def test_a_cursor_that_no_answer_had_is_400(api, text):
    answer = api.get(f"{URL}?cursor={text}")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["cursor"])


def test_who_has_the_answer_is_told_that_it_is_the_same(api):
    first = api.get(f"{URL}?{DAY}")
    again = api.get(f"{URL}?{DAY}", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    used(hour(5), hour(6))
    changed = api.get(f"{URL}?{DAY}", headers={"If-None-Match": first["ETag"]})
    assert (changed.status_code, changed["ETag"] != first["ETag"]) == (200, True)


def exported(api, query):
    answer = api.get(f"{URL}/export?{query}")
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/csv; charset=utf-8")
    assert answer["Content-Disposition"].startswith('attachment; filename="costs-by-')
    return list(csv.DictReader(StringIO(b"".join(answer.streaming_content).decode())))


@pytest.mark.parametrize(
    "query",
    [
        *("aggregate=project", "aggregate=team,label:app&accumulate=hour", "aggregate=all&cost=monthly"),
        "aggregate=member&compare=previous&timezone=Europe/Berlin",
    ],
)
def test_csv_has_the_rows_of_the_answer(api, query):
    rows, lines = get(api, f"{DAY}&{query}")["results"], exported(api, f"{DAY}&{query}")
    assert [line["window_start"] for line in lines] == [row["window"]["start"] for row in rows]
    for row, line in zip(rows, lines, strict=True):
        assert {key: line[key] for key in row["properties"]} == row["properties"]
        assert [line[name] for name in ("gpu_hours", "total", "currency")] == [
            row[name] for name in ("gpu_hours", "total", "currency")
        ]
        past = row["previous"] or {"gpu_hours": "", "total": ""}
        assert (line["previous_gpu_hours"], line["previous_total"]) == (past["gpu_hours"], past["total"])
        assert line["change"] == (row["change"] or "")


def test_no_text_of_an_export_is_a_formula(api):
    used(hour(0), hour(1), member="=1+1")
    used(hour(0), hour(1), member="-2")
    names = {line["member"] for line in exported(api, f"{DAY}&aggregate=member&compare=previous")}
    assert {"'=1+1", "'-2"} <= names
    changes = {line["change"] for line in exported(api, f"{DAY}&aggregate=project&compare=previous")}
    assert "-1.1000" in changes


@pytest.mark.parametrize(
    "query", ["cost=weekly", "compare=next", "limit=0", "limit=1001", "colour=red", "aggregate=all,team"]
)
def test_what_cannot_be_read_is_400(api, query):
    answer = api.get(f"{URL}?{query}")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [query.partition("=")[0]])
    assert api.get(f"{URL}/export?format=xlsx").status_code == 400


def test_use_without_a_price_has_no_change(api):
    Price.objects.all().delete()
    [row, *_] = get(api, f"{DAY}&aggregate=all&compare=previous")["results"]
    assert (row["total"], row["change"]) == (None, None)


def test_a_request_takes_as_many_statements_for_50_rows(api):
    """Of the token, the teams, usage, currency and bills, outages, and the simulated past."""

    def grow():
        for n in range(49):
            used(hour(n % 20), hour(20), member=f"person-{n}", project=f"vision-{n}")

    assert_constant(lambda: get(api, f"{DAY}&aggregate=offering&accumulate=hour"), grow, at_most=10)


def test_the_answer_is_the_same_in_two_worlds_that_differ_only_in_another_team(api):
    questions = [
        *("aggregate=team", "aggregate=all", "aggregate=label:app", "aggregate=cluster,node", "aggregate=allocation"),
        *("accumulate=hour&aggregate=flavor", 'filter=team!:"vision"', 'filter=member~:"a"|team:"language"'),
        *("compare=previous&aggregate=department", "cost=monthly&aggregate=kind", "idle=separate&aggregate=flavor"),
        *('filter=team:"language"|pod:"x"', "limit=1&aggregate=member"),
    ]

    def answers():
        with clock.frozen(hour(30)):
            found = [api.get(f"{path}?{DAY}&{each}") for each in questions for path in (URL, f"{URL}/export")]
            return [
                b"".join(one.streaming_content) if one.streaming else (one.status_code, one.content, one.get("ETag"))
                for one in found
            ]

    before = answers()
    for n in range(3):
        used(hour(n), hour(20), 2, team="language", project=f"language-{n}", labels={"app": f"other-{n}"})
    used(hour(-30), hour(-1), team="language", project="language-old", member="ada")
    assert answers() == before
