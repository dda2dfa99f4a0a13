"""The parameter `idle` of /costs: who may use which, and that a member learns nothing of other teams' use."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from portal.core import clock
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Team, User
from quotas.catalog.models import Pool
from quotas.costs import rollups
from quotas.costs.columns import KEYS
from quotas.limits import services as limits
from tests.support.capacity import RESOURCES, record
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.people import client, person
from tests.support.quotas import hour, used

pytestmark = pytest.mark.django_db
URL = "/api/v1/costs"


@pytest.fixture(autouse=True)
def at_ten() -> Iterator[None]:
    with clock.frozen(hour(10)):
        yield


@pytest.fixture
def third_team(team: Team) -> Team:
    return tenants.create_team(SYSTEM, team.department, "speech", "Speech")


@pytest.fixture
def member(team: Team, other_team: Team, third_team: Team) -> User:
    """Record ten hours of 8 l40s at 1.10: vision has 3 and holds 1, language has 2, speech has 2, research has one."""
    fleet()
    record(RESOURCES, 0)
    for holder, nominal in ((team, 3), (other_team, 2), (third_team, 2), (team.department, 1)):
        set_quota(holder, nominal)
    used(hour(0), hour(10), 1)
    return person(team)


def set_quota(holder: Any, nominal: int, **bounds: Any) -> None:
    with clock.frozen(hour(-1)):
        pool = Pool.objects.get(key="l40s/gpu")
        limits.set_limit(SYSTEM, holder, pool, nominal, **{"borrowing": 5, **bounds})


def get(user: User, query: str = "", start: float = 0, end: float = 10) -> Any:
    api: Client = client(user)
    return api.get(f"{URL}?window={hour(start):%FT%TZ},{hour(end):%FT%TZ}&{query}")


def rows(user: User, query: str, *window: float) -> dict[str, tuple[str, str]]:
    return {row["name"]: (row["cost"], row["idle_cost"]) for row in get(user, query, *window).json()["results"]}


def auditor() -> User:
    return person(platform_role="auditor")


def test_a_member_sees_the_unused_quota_of_its_own_team(member: User):
    assert rows(member, "aggregate=team&idle=owner") == {"vision": ("11.0000", "22.0000")}


def test_staff_see_that_of_all(member: User):
    assert rows(auditor(), "aggregate=department,team&idle=owner") == {
        "research/vision": ("11.0000", "22.0000"),
        "research/language": ("0.0000", "22.0000"),
        "research/speech": ("0.0000", "22.0000"),
        "research/__idle__": ("0.0000", "11.0000"),
    }


@pytest.mark.parametrize("mode", ["separate", "share"])
def test_what_tells_the_use_of_all_teams_is_refused_to_members(member: User, mode: str):
    answer = get(member, f"idle={mode}")
    assert (answer.status_code, answer.json()["reason"]) == (403, "role_missing")
    assert "idle=owner" in answer.json()["hint"]
    assert get(auditor(), f"idle={mode}").status_code == 200


@pytest.mark.parametrize("mode", ["hide", "owner"])
def test_members_may_use_the_others(member: User, mode: str):
    assert get(member, f"idle={mode}").status_code == 200


def test_without_it_members_have_it_hidden_and_staff_apart(member: User):
    assert get(member, "aggregate=team").json() == get(member, "aggregate=team&idle=hide").json()
    assert rows(auditor(), "aggregate=team") == rows(auditor(), "aggregate=team&idle=separate")
    assert rows(auditor(), "aggregate=team")["__idle__"] == ("0.0000", "77.0000")


@pytest.mark.parametrize("query", ["idle=x", "idle=share&idle_by=x", "idle=share&idle_split=x", "idle_by=node"])
def test_other_values_are_refused_with_those_that_work(member: User, query: str):
    answer = get(auditor(), query)
    assert answer.status_code == 400
    [[message]] = answer.json()["errors"].values()
    assert message.startswith(("Use one of", "It goes with idle=share"))


def test_idle_is_shared_as_the_parameters_say(member: User):
    used(hour(0), hour(10), 3, team="language")
    assert rows(auditor(), "aggregate=team&idle=share") == {
        "language": ("33.0000", "33.0000"),
        "vision": ("11.0000", "11.0000"),
    }
    even = rows(auditor(), "aggregate=team&idle=share&idle_by=flavor&idle_split=even")
    assert even == {"language": ("33.0000", "22.0000"), "vision": ("11.0000", "22.0000")}


QUERIES = [
    *(f"aggregate={keys}{idle}" for keys in (*KEYS, "team,project", "cluster,flavor") for idle in ("", "&idle=owner")),
    *("idle=hide", "idle=separate", "idle=share", "idle=share&idle_split=even", "aggregate=label:x&idle=owner"),
    *(f"aggregate=team&idle=owner&{more}" for more in ("accumulate=false", "filter=team:language", "filter=node:x")),
]


def answers(member: User) -> list[tuple[int, Any]]:
    """Return the answer to every question, without what names the single request."""
    found = [get(member, query) for query in QUERIES]
    return [(one.status_code, {**one.json(), "instance": None}) for one in found]


def test_a_member_learns_nothing_of_how_others_use_what_is_theirs(member: User):
    """Two worlds: in one of them language uses its quota, and speech borrows what is the department's."""
    before = answers(member)
    used(hour(2), hour(7.5), 2, team="language", project="language-train", namespace="language-train", member="ben")
    used(hour(3), hour(6), 3, team="speech", project="speech-train", namespace="speech-train", member="cem")
    assert answers(member) == before
    rollups.roll_up(LOCAL, hour(0), hour(9))
    assert answers(member) == before
    assert rows(auditor(), "aggregate=team&idle=owner")["language"] == ("12.1000", "9.9000")


def test_a_member_learns_how_much_its_team_lends_and_not_who_has_it(member: User):
    """Two of others' slices are borrowed, one of them of the department: by language, then by language and speech."""
    for start, held in ((0, {"language": 4, "speech": 2}), (5, {"language": 3, "speech": 3})):
        for team, count in held.items():
            used(hour(start), hour(start + 5), count, team=team)
    halves = [rows(member, "aggregate=team&idle=owner", start, start + 5) for start in (0, 5)]
    assert halves == [{"vision": ("5.5000", "5.5000")}] * 2
