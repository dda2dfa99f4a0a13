"""What the bench computes of its measurements: rates, evenness, writes, limits, the large fleet, and curves."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import curves, fleet_estimate, processors
from bench.burst import Burst, added, compared, fairness, writes
from bench.fleet_estimate import EventCost, Fleet
from bench.processors import Sample, Use

EXACT = {"workloads": 10, "resourcequotas": 10, "gpuprojects": 4}
POINT = {"memory_bytes": 100, "peak_bytes": 200, "restart_s": 2.0, "cold_start_s": 4.0}


def test_a_rate_is_the_number_by_the_time_of_the_last():
    burst = Burst(accepted=[0.5, 1.0, 2.0, 1.5], held={"a": [2.0, 8.0], "b": [4.0, 3.0]})
    assert burst.document() == {
        "requests": 4,
        "held": 4,
        "accepted_per_s": 2.0,
        "held_per_s": 0.5,
        "p50_s": 3.5,
        "p95_s": 8.0,
    }


def test_rates_are_compared_with_the_mean_of_the_bare_client():
    first, second = Burst([1.0], {"a": [0.5]}), Burst([1.0], {"a": [0.25]})
    found = compared({"accepted_per_s": 2.0, "held_per_s": 1.5}, first, second)
    assert (found["ratio"], found["bare_by_itself"]) == ({"accepted": 2.0, "held": 0.5}, 2.0)


def test_a_team_that_waits_for_the_others_is_seen():
    even = fairness({"a": [1.0, 3.0], "b": [2.0, 4.0]}, 2)
    starved = fairness({"a": [1.0, 2.0], "b": [3.0, 4.0]}, 2)
    assert (even["least_at_half"], even["most_at_half"]) == (1, 2)
    assert (starved["first_team_done_s"], starved["last_team_done_s"]) == (2.0, 4.0)


def test_one_write_an_object_and_status_step_is_exact():
    found = writes(10, 34, EXACT, projects=2)
    assert (found["status"], found["per_request"], found["is_exact"]) == (10, 3.4, True)


@pytest.mark.parametrize(
    ("own", "applied"),
    [
        pytest.param(35, EXACT, id="a write more of a status, or of another object"),
        pytest.param(35, {**EXACT, "workloads": 11}, id="a lease twice"),
        pytest.param(41, {**EXACT, "gpuprojects": 11}, id="a GpuProject more often than there are allocations"),
        pytest.param(31, {**EXACT, "gpuprojects": 1}, id="a project without its GpuProject"),
    ],
)
def test_any_other_write_is_not_exact(own: int, applied: dict[str, int]):
    assert not writes(10, own, applied, projects=2)["is_exact"]


def test_what_is_added_is_the_difference_of_percentiles():
    found = added([0.3, 0.4, 0.9], [0.1, 0.2], [0.2])
    assert (found["added_p50_s"], found["added_p95_s"], found["bare_halves_p95_s"]) == (0.2, 0.7, [0.2, 0.2])


def test_use_is_what_a_process_took_between_two_samples():
    use = processors.between(Sample(0.0, 0.0, {"web": 1.0}), Sample(10.0, 0.0, {"web": 3.0, "worker": 1.0}))
    assert (use.busy, use.per(100)) == (1.0, {"web": 20.0, "worker": 10.0})


def test_busy_processors_bound_a_rate_by_what_takes_most():
    assert processors.bound(Use(0.95, {"web": 1.0, "worker": 3.0}), {"a": 2.0}).endswith("worker takes most")


def test_idle_processors_bound_no_rate():
    assert processors.bound(Use(0.5, {"web": 1.0}), {"for Kueue": 2.0, "for the worker": 1.0}) == "the wait for Kueue"


def test_a_large_fleet_costs_its_events():
    fleet = Fleet(nodes=300, gpus_of_node=8, node_report_s=300, hold_hours=1, events_of_hold=6, other_pods=0)
    assert fleet.events_per_s() == {"unchanged node": 1.0, "changed": 4.0, "left out": 0.0}
    costs = {"unchanged node": EventCost(100, 0), "changed": EventCost(50, 25)}
    found = fleet_estimate.document(costs, [{"objects": 0, **POINT}], fleet)
    assert (found["watcher_processors"], found["database_processors"]) == (0.3, 0.1)


def test_memory_and_start_grow_in_a_straight_line():
    last = {name: value + 1000 for name, value in POINT.items()}
    points = [{"objects": 0, **POINT}, {"objects": 10, **last}]
    found = fleet_estimate.document({}, points, Fleet(nodes=1, gpus_of_node=2, objects_of_hold=4))
    assert (found["objects"], found["memory_bytes"], found["cold_start_s"]) == (10, 1100, 1004.0)


def test_what_falls_with_more_objects_is_not_extended_below_it():
    points = [{"objects": 0, **POINT}, {"objects": 10, **POINT, "restart_s": 1.0}]
    assert fleet_estimate.document({}, points)["restart_s"] == 1.0


def test_a_curve_begins_at_zero_and_ends_at_its_last_point():
    chart = ElementTree.fromstring(curves.svg("Lag & memory", "objects", "ms", {"p50": [(0, 0), (100, 50)]}))
    [line] = chart.iter("{http://www.w3.org/2000/svg}polyline")
    assert (
        line.get("points")
        == f"{curves.LEFT}.0,{curves.HEIGHT - curves.BOTTOM}.0 {curves.WIDTH - curves.RIGHT}.0,{curves.TOP}.0"
    )


def test_only_curves_of_what_was_measured_are_drawn(tmp_path: Path):
    lag = {"lag_p50_s": 0.01, "lag_p95_s": 0.02}
    points = [{"objects": 0, **POINT, **lag}, {"objects": 10, **POINT, **lag}]
    written = curves.draw({"observed": {"points": points}}, tmp_path)
    assert sorted(path.name for path in written) == ["watcher-lag.svg", "watcher-memory.svg", "watcher-start.svg"]
