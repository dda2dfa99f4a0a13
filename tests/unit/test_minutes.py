"""The tables of how long the parts of the suite took."""

import pytest

from tests import minutes
from tests.minutes import Part


@pytest.fixture(autouse=True)
def records(tmp_path, monkeypatch):
    monkeypatch.setattr(minutes, "RECORDS", tmp_path / "minutes")


def test_the_parts_are_in_order_with_their_sum_and_what_runs_together_and_the_build_apart():
    minutes.record(minutes.TOGETHER, Part(90))
    minutes.record("faults", Part(60, {"tests/faults/a.py::b": {"setup": 30, "call": 50, "teardown": 20}}))
    minutes.record("lint", Part(30))
    minutes.record(minutes.BUILD, Part(360))
    rows = minutes.tables().partition("\n\n")[0].splitlines()[2:]
    assert rows == [
        "| lint | 0.5 |  |  |  |",
        "| all tests | 1.5 |  |  |  |",
        "| **`make test`** | 2.0 |  |  |  |",
        "| faults | 1.0 | 1 | 30% | 20% |",
        f"| {minutes.BUILD} | 6.0 |  |  |  |",
    ]


def test_the_slowest_tests_come_first_with_their_set_up_and_teardown():
    minutes.record("cluster", Part(60, {f"tests/cluster/{n}.py::it": {"setup": n, "call": 1.0} for n in range(20)}))
    rows = minutes.tables().partition("\n\n")[2].splitlines()[2:]
    assert len(rows) == minutes.SLOWEST
    assert rows[0] == "| `cluster/19.py::it` | cluster | 20 | 19 | 0 |"
