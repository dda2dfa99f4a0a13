"""Costs as run-rates."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from quotas.costs.questions import Metric, Question
from quotas.costs.rating import Window

START = datetime(2026, 11, 2, tzinfo=UTC)
DAY = Window(START, START + timedelta(days=1))


@pytest.mark.parametrize(
    ("metric", "hours", "expected"),
    [
        (Metric.CUMULATIVE, 6, 1),
        (Metric.HOURLY, 48, Fraction(1, 24)),
        (Metric.HOURLY, 6, Fraction(1, 6)),
        (Metric.DAILY, 6, 4),
        (Metric.MONTHLY, 24, Fraction(730, 24)),
        (Metric.DAILY, 0, 0),
        (Metric.DAILY, -5, 0),
    ],
)
def test_only_the_time_until_now_counts(metric, hours, expected):
    question = Question(DAY, START + timedelta(hours=hours), metric=metric)
    assert question.factor(DAY) == expected
