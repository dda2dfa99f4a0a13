"""Exports of costs are read by steps, and are to the digit what the answer is that is read as a whole."""

import gc
from collections.abc import Iterator

import pytest
from django.http import QueryDict

from portal.core import clock
from portal.core.errors import Forbidden, Invalid
from portal.tenants.models import Team, User
from quotas.costs import cost_parameters, streamed_costs
from quotas.costs.answers import answer
from quotas.costs.cost_rows import CostRow
from quotas.costs.questions import Question, asked_by
from quotas.metering.models import RolledUpHour
from tests.support.people import person
from tests.support.quotas import hour, used
from tests.support.two_worlds import NOW, another_world, one_world

pytestmark = pytest.mark.django_db
WINDOW = "window=2026-09-20,2026-11-09"
FOR_ALL = [
    *("aggregate=team", "aggregate=offering,label:app&accumulate=day", "aggregate=all&accumulate=week"),
    *("aggregate=member&accumulate=day&cost=monthly", "aggregate=project&accumulate=month&cost=hourly"),
    *("aggregate=team&accumulate=day&compare=previous", "aggregate=team,flavor&accumulate=month&compare=previous"),
    *("aggregate=department,team&accumulate=day&idle=owner", "aggregate=kind&accumulate=day&idle=hide"),
    *('aggregate=team&accumulate=hour&timezone=Asia/Kolkata&filter=label[app]:"train"', "aggregate=allocation"),
]
FOR_STAFF = [
    *("aggregate=team&accumulate=day", "aggregate=cluster,flavor&accumulate=day", "aggregate=all&accumulate=day"),
    *("aggregate=team&accumulate=day&idle=share", "aggregate=team&accumulate=day&idle=share&idle_split=even"),
    *("aggregate=node&accumulate=week", "aggregate=team&accumulate=day&idle=owner&compare=previous&cost=daily"),
]


@pytest.fixture(autouse=True)
def now(team: Team, other_team: Team) -> Iterator[None]:
    one_world(team, other_team)
    another_world(other_team, person(other_team))
    for number in range(7):
        used(hour(number), hour(number + number / 7), 1, team="vision", project="vision-dev", offering="new/whole")
    with clock.frozen(NOW):
        yield


@pytest.fixture(params=[7, 31])
def steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read so many steps at a time, and put all of them on the disk."""
    monkeypatch.setattr(streamed_costs, "STEPS", request.param)
    monkeypatch.setattr(streamed_costs, "IN_MEMORY_BYTES", 1)


def question(user: User, text: str) -> Question:
    return asked_by(user, cost_parameters.read(QueryDict(f"{WINDOW}&{text}"), NOW))


def compared(user: User, text: str) -> list[CostRow]:
    """Return the streamed rows, once they are those of the answer."""
    asked = question(user, text)
    streamed = list(streamed_costs.rows(asked))
    assert streamed == answer(asked).rows, text
    return streamed


def test_a_members_rows_are_those_of_the_answer(team: Team, steps: None) -> None:
    user = person(team)
    for text in FOR_ALL:
        assert any(row.cost != "0.0000" for row in compared(user, text)), text


def test_the_rows_of_platform_staff_are_those_of_the_answer(steps: None) -> None:
    user = person(platform_role="auditor")
    for text in [*FOR_ALL, *FOR_STAFF]:
        assert any(row.cost != "0.0000" for row in compared(user, text)), text


def test_what_is_not_known_of_the_whole_window_is_not_known_of_a_step(steps: None) -> None:
    RolledUpHour.objects.filter(hour__gte=hour(-20 * 24), hour__lt=hour(-10 * 24)).delete()
    user = person(platform_role="auditor")
    for text in FOR_STAFF:
        assert {row.idle_cost for row in compared(user, text)} == {None}, text


def test_what_cannot_be_asked_is_refused_before_the_first_row(team: Team) -> None:
    with pytest.raises(Forbidden):
        question(person(team), "idle=share")
    with pytest.raises(Invalid):
        streamed_costs.rows(question(person(team), "aggregate=colour"))


def test_the_rows_of_one_step_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_costs, "STEPS", 1)
    asked = question(person(platform_role="auditor"), "aggregate=allocation&accumulate=day")
    most = len({row.name for row in answer(asked).rows})
    gc.collect()
    alive = [sum(type(each) is CostRow for each in gc.get_objects()) for _ in streamed_costs.rows(asked)]
    assert len(alive) > 2 * max(alive)
    assert most > max(alive)
