"""The table of versions, and that its page says what was recorded."""

import json

import pytest

from deploy.local import build
from tests import compat
from tests.support.cluster.guide_tables import filled


@pytest.mark.parametrize(
    ("count", "outcome"),
    [
        ({"passed": 468}, "468 passed"),
        ({"passed": 462, "left out": 6}, "462 passed, 6 left out"),
        ({"left out": 17}, "17 left out"),
        ({"passed": 460, "failed": 1}, "460 passed, 1 failed"),
        ({}, "failed: no test ran"),
    ],
)
def test_an_outcome_tells_what_failed_and_what_was_left_out(count: dict[str, int], outcome: str) -> None:
    assert compat.words(count) == outcome


def test_a_column_is_a_version_and_the_oldest_is_first() -> None:
    of_one = {"kueue": "v0.19.2", "date": "2026-11-28", "parts": {"tour": "passed"}}
    results = {"1.37": {**of_one, "kubernetes": "v1.37.2"}, "1.35": {**of_one, "kubernetes": "v1.35.4"}}
    head, _, kueue, tour, attacks, *_ = compat.table(results).splitlines()
    assert head == "|  | Kubernetes 1.35.4 | Kubernetes 1.37.2 |"
    assert (kueue, tour) == ("| Kueue | 0.19.2 | 0.19.2 |", "| tour | passed | passed |")
    assert attacks == "| attacks | not run | not run |"


def test_the_page_says_what_was_recorded_of_versions_that_can_be_built() -> None:
    results, page = json.loads(compat.RESULTS.read_text()), compat.PAGE.read_text()
    assert filled(compat.PAGE, "versions", page, compat.table(results)) == page
    assert set(results) <= set(build.kubernetes_versions())
