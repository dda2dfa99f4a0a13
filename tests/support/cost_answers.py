"""Costs of all teams, or of some, whoever asks."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from portal.core import clock
from quotas.costs.answers import answer
from quotas.costs.cost_rows import Costs
from quotas.costs.filters import EVERYTHING, Where, as_filter
from quotas.costs.questions import Question
from quotas.costs.rating import Window


def question(
    window: Window,
    keys: Sequence[str] = ("project",),
    *,
    where: Where = EVERYTHING,
    now: datetime | None = None,
    teams: Sequence[str] | None = None,
    **options: Any,
) -> Question:
    """Return the question of these teams, by default of all, as of now by default."""
    return Question(window, now or clock.now(), keys=keys, where=as_filter(where), teams=teams, **options)


def costs(window: Window, keys: Sequence[str] = ("project",), **options: Any) -> Costs:
    """Return the answer to that question."""
    return answer(question(window, keys, **options))
