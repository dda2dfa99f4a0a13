"""Costs of what nobody holds, and the proof, of a time before capacity was recorded: unknown, and not nothing."""

import csv
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from portal.core import clock
from portal.tenants.models import Team, User
from quotas.costs import rollups
from quotas.metering import proofs
from tests.support.capacity import RESOURCES, record
from tests.support.clusters import LOCAL, make_cluster
from tests.support.fleet import fleet
from tests.support.pages import browser_of, text
from tests.support.people import client, person
from tests.support.quotas import hour, used

pytestmark = pytest.mark.django_db
URL = "/api/v1/costs"
BEFORE, FROM_THEN = "2026-11-02T00:00:00Z,2026-11-02T10:00:00Z", "2026-11-02T04:30:00Z,2026-11-02T10:00:00Z"
COLUMNS = ("idle_cost", "stranded_cost", "unavailable_cost", "unmanaged_cost", "variance")
PARTS = ("capacity_gpu_hours", "unmanaged", "unavailable", "stranded", "idle", "variance")
SINCE = [{"cluster": LOCAL, "since": "2026-11-02T04:30:00Z"}]


@pytest.fixture(autouse=True)
def ledger(team: Team) -> Iterator[None]:
    """Hold 2 of 8 GPUs from the first hour on, with their capacity recorded since half past four; it is ten o'clock."""
    with clock.frozen(hour(10)):
        fleet(team)
        used(hour(0), None, 2)
        record(RESOURCES, 4.5)
        yield


@pytest.fixture
def auditor() -> User:
    return person(platform_role="auditor")


def answer(user: User, window: str, query: str = "aggregate=flavor") -> Any:
    return client(user).get(f"{URL}?window={window}&{query}").json()


def row(user: User, window: str, name: str = "l40s", query: str = "aggregate=flavor") -> dict[str, Any]:
    [found] = [one for one in answer(user, window, query)["results"] if one["name"] == name]
    return found


def test_what_nobody_held_is_unknown_if_the_window_begins_before_capacity_is_recorded(auditor: User) -> None:
    found = row(auditor, BEFORE)
    assert ([found[name] for name in COLUMNS], found["cost"]) == ([None] * 5, "22.0000")
    assert row(auditor, FROM_THEN)["idle_cost"] == "36.3000"


def test_of_an_asset_only_what_was_held_is_known_before(auditor: User) -> None:
    [before] = client(auditor).get(f"{URL}/assets?window={BEFORE}").json()["results"]
    assert ([before[name] for name in (*PARTS, "occupancy")], before["held"]) == ([None] * 7, "20.000000")
    [since] = client(auditor).get(f"{URL}/assets?window={FROM_THEN}").json()["results"]
    assert (since["capacity_gpu_hours"], since["idle"], since["occupancy"]) == ("44.000000", "33.000000", "0.2500")


def test_it_is_unknown_too_when_it_is_rolled_up(auditor: User) -> None:
    before = answer(auditor, BEFORE)
    rollups.roll_up(LOCAL, hour(0), hour(9))
    assert answer(auditor, BEFORE) == before


def test_other_keys_have_it_unknown_in_the_row_of_what_nobody_held(auditor: User) -> None:
    assert row(auditor, BEFORE, "__idle__", "aggregate=team")["idle_cost"] is None
    assert row(auditor, BEFORE, "vision", "aggregate=team")["idle_cost"] == "0"


def test_a_cluster_that_is_recorded_later_makes_only_its_own_rows_unknown(auditor: User) -> None:
    other = make_cluster("other").slug
    used(hour(9), None, 1, cluster=other)
    by_cluster = "aggregate=cluster"
    assert row(auditor, FROM_THEN, other, by_cluster)["idle_cost"] is None
    assert row(auditor, FROM_THEN, LOCAL, by_cluster)["idle_cost"] == "36.3000"
    assert row(auditor, FROM_THEN)["idle_cost"] is None
    assert row(auditor, FROM_THEN, query=f"aggregate=flavor&filter=cluster:{LOCAL}")["idle_cost"] == "36.3000"
    assert answer(auditor, BEFORE)["capacity_recorded_since"] == [*SINCE, {"cluster": other, "since": None}]


def test_staff_see_since_when_it_is_recorded_and_members_do_not(auditor: User, member: User) -> None:
    assert answer(auditor, BEFORE)["capacity_recorded_since"] == SINCE
    assert answer(member, BEFORE)["capacity_recorded_since"] == []
    assert [row(member, BEFORE)[name] for name in COLUMNS] == ["0"] * 5


def test_the_proof_of_an_hour_before_it_has_only_what_was_held(auditor: User) -> None:
    for at in (3, 4, 5):
        proofs.prove(LOCAL, hour(at))
    found = client(auditor).get(f"{URL}/proof?window={BEFORE}").json()["results"]
    assert [one["held"] for one in found] == ["2.000000"] * 3
    assert [one["capacity_recorded_since"] for one in found] == [SINCE[0]["since"]] * 3
    assert [one["idle"] for one in found] == ["6.000000", None, None]
    assert {found[2][name] for name in PARTS} == {None}


def test_the_page_says_since_when_it_is_recorded_and_what_is_unknown(auditor: User) -> None:
    sentence = "The capacity of cluster local is recorded since 2026-11-02 04:30 UTC. Of the time before, only"
    page = costs_page(browser_of(auditor), BEFORE)
    assert sentence in page
    assert "2026-11-02 l40s unknown 20.00 unknown unknown unknown unknown unknown" in page
    page = costs_page(browser_of(auditor), FROM_THEN)
    assert sentence not in page
    assert "44.00 11.00 0.00 0.00 0.00 33.00 0.00" in page


def costs_page(browser: Client, window: str) -> str:
    """Return the words of the page, without its elements."""
    return " ".join(re.sub(r"<[^>]*>", " ", text(browser.get("/costs/fleet", {"window": window}))).split()).replace(
        " .", "."
    )


def compared(user: User, hours: str) -> Any:
    return answer(user, hours, "aggregate=team&compare=previous")


@pytest.mark.parametrize("role", ["member", "auditor"])
def test_there_is_no_change_against_a_time_that_was_not_recorded(team: Team, auditor: User, role: str) -> None:
    user = person(team) if role == "member" else auditor
    for window in (BEFORE, FROM_THEN):
        found = compared(user, window)
        assert found["previous_total"] is None
        assert {(one["change"], one["previous"]["total"]) for one in found["results"]} == {(None, None)}
        page = text(browser_of(user).get(f"/costs?window={window}"))
        assert "no comparison" in page
        assert "Recorded only since 2026-11-02 00:00 UTC" in page
        query = f"window={window}&aggregate=team&compare=previous&format=csv"
        exported = client(user).get(f"{URL}/export?{query}").getvalue().decode().splitlines()
        lines = list(csv.DictReader(exported))
        assert lines
        assert {(line["previous_total"], line["change"]) for line in lines} == {("", "")}


def test_a_period_that_is_not_recorded_from_its_start_on_says_so(auditor: User) -> None:
    with_time_before = "2026-11-01T00:00:00Z,2026-11-02T10:00:00Z"
    for window, is_told in ((with_time_before, True), (BEFORE, False)):
        tile = costs_tile(auditor, window)
        assert ("Recorded only since 2026-11-02 00:00 UTC." in tile) == is_told, window
    page = text(browser_of(auditor).get("/costs?window=2026-10-01,2026-10-02"))
    assert "What was held before is not known." in page
    assert "Nothing was held" not in page


def costs_tile(user: User, window: str) -> str:
    """Return the figure of the period on the page of costs, with its note."""
    page = text(browser_of(user).get("/costs", {"window": window}))
    return page[page.index('id="tile-period"') : page.index('id="tile-change"')]


def test_there_is_a_change_against_a_time_that_was_recorded(auditor: User) -> None:
    found = compared(auditor, "2026-11-02T05:00:00Z,2026-11-02T07:00:00Z")
    assert (found["previous_total"], found["results"][0]["change"]) == (found["total"], "0.0000")


def test_the_page_of_costs_says_since_when_capacity_is_recorded_and_no_other_reason(auditor: User) -> None:
    page = text(browser_of(auditor).get(f"/costs?window={BEFORE}"))
    assert "Capacity is recorded only since 2026-11-02 04:30 UTC." in page
    assert "no price, or" not in page


def test_the_page_of_bills_says_why_the_capacity_of_a_month_is_unknown(auditor: User) -> None:
    with clock.frozen(hour(24 * 40)):
        assert "recorded only since 2026-11-02 04:30 UTC" in text(browser_of(auditor).get("/bills"))
