"""GET /costs/savings."""

from fractions import Fraction

import pytest

from portal.core import clock
from quotas.catalog.models import Flavor
from tests.support.capacity import GPUS, RESOURCES, always, hold_gpu, record
from tests.support.fleet import fleet
from tests.support.hold_pods import pods, recorded_since
from tests.support.people import client, person
from tests.support.quotas import hour, used

pytestmark = pytest.mark.django_db
URL, DAY = "/api/v1/costs/savings", "window=2026-11-02,2026-11-03"


@pytest.fixture(autouse=True)
def at_ten():
    with clock.frozen(hour(10)):
        yield


@pytest.fixture
def hold(team, other_team):
    """Return an idle hold of vision beside one of language, in a fleet where a GPU is stranded."""
    with clock.frozen(hour(-24)):
        fleet(team, other_team)
        recorded_since(-24)
    record({**RESOURCES, **GPUS}, 0)
    flavor = Flavor.objects.get(name="h100")
    flavor.partitionable = True
    flavor.save()
    always(flavor)
    hold_gpu("gpu-0-mig-1g10gb-19-0", 6, None, gpu_share=Fraction(1, 7), team="language", member="")
    used(hour(0), None, team="language", project="language-train")
    used(hour(0), hour(8), project="vision-dev")
    row = used(hour(0), None, 2)
    pods(row.holder_id, 1, 4)
    return row


def results(user, query=""):
    answer = client(user).get(f"{URL}?{DAY}&{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_member_gets_what_their_teams_could_save(hold, team):
    body = results(person(team))
    assert [(row["kind"], row["project"], row["gpu_hours"], row["cost"]) for row in body["results"]] == [
        ("idle_hold", "vision-train", "12.000000", "13.2000"),
        ("quiet_hours", "vision-dev", "6.000000", "6.6000"),
        ("quiet_hours", "vision-train", "2.000000", "2.2000"),
    ]
    idle = body["results"][0]
    assert (idle["allocation"], idle["job"], idle["since"], idle["cost_per_hour"], idle["member"]) == (
        *(str(hold.holder_id), None, "2026-11-02T04:00:00Z", "2.2000", "ada"),
    )
    assert body["currency"] == "EUR"
    assert body["window"] == {"start": "2026-11-02T00:00:00Z", "end": "2026-11-03T00:00:00Z"}


def test_totals_are_by_kind_over_all_pages(hold, team):
    body = results(person(team), "limit=1")
    assert (len(body["results"]), bool(body["next"])) == (1, True)
    assert [tuple(row.values()) for row in body["totals"]] == [
        ("idle_hold", 1, "12.000000", "13.2000"),
        ("quiet_hours", 2, "8.000000", "8.8000"),
    ]


def test_platform_staff_get_all_teams_and_stranded_gpus(hold):
    body = results(person(platform_role="auditor"))
    assert {row["team"] for row in body["results"]} == {"", "vision", "language"}
    [stranded] = [row for row in body["results"] if row["kind"] == "stranded"]
    assert stranded["layouts"] == [{"profile": "1g.10gb", "gpus": "0.857143", "gpu_count": 1}]
    assert (stranded["cost"], stranded["cost_per_hour"]) == ("10.9714", "2.7429")


def test_a_hold_is_idle_after_the_hours_of_the_query(hold, team):
    for hours, kinds in ((6, True), (7, False)):
        found = {row["kind"] for row in results(person(team), f"idle_hours={hours}")["results"]}
        assert ("idle_hold" in found) == kinds


def test_nights_are_those_of_the_time_zone(hold, team):
    """Of Tokyo's Monday from 15:00 UTC on Sunday, the night ends at 21:00 UTC, and the evening is after now."""
    answer = client(person(team)).get(f"{URL}?window=2026-11-02,2026-11-03&timezone=Asia/Tokyo").json()
    assert [row["project"] for row in answer["results"] if row["kind"] == "quiet_hours"] == []


@pytest.mark.parametrize("query", ["window=93d", "window=never", "idle_hours=0", "idle_hours=x", "timezone=Nowhere"])
def test_what_cannot_be_answered_is_refused(hold, team, query):
    answer = client(person(team)).get(f"{URL}?{query}")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [query.partition("=")[0]])


def test_who_is_in_no_team_gets_nothing(hold):
    body = results(person())
    assert (body["results"], body["totals"]) == ([], [])
