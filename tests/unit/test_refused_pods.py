"""Why pods of Jobs were refused, read from the events of all projects, page by page."""

from typing import Any, cast

from allocations.cluster import events
from allocations.cluster.client import Client


class Events:
    """A cluster with this number of events, each of another Job; it counts the requests."""

    def __init__(self, number: int) -> None:
        self.number, self.requests = number, 0

    def json(self, method: str, path: str, *, query: dict[str, Any], timeout: tuple[float, float]) -> dict[str, Any]:
        assert (method, path, timeout) == ("GET", "/api/v1/events", events.TIMEOUT_S)
        self.requests += 1
        start = int(query.get("continue", 0))
        end = min(start + query["limit"], self.number)
        return {
            "metadata": {"continue": str(end)} if end < self.number else {},
            "items": [event(f"job-{n}", f"refused {n}", n) for n in range(start, end)],
        }


def event(job: str, message: str, version: int) -> dict[str, Any]:
    return {
        "metadata": {"resourceVersion": str(version)},
        "involvedObject": {"kind": "Job", "uid": job},
        "message": message,
    }


def read(cluster: Events) -> dict[str, list[str]]:
    return events.refusals_of_jobs(cast(Client, cluster))


def test_many_events_of_one_project_do_not_hide_those_of_another() -> None:
    last = 2 * events.PAGE + 1
    assert read(Events(last + 1))[f"job-{last}"] == [f"refused {last}"]


def test_few_events_are_one_request() -> None:
    cluster = Events(3)
    assert len(read(cluster)) == 3
    assert cluster.requests == 1


def test_no_more_pages_are_read_than_a_page_can_wait_for() -> None:
    cluster = Events(100 * events.MAX_EVENTS)
    assert len(read(cluster)) == events.MAX_EVENTS
    assert cluster.requests == events.MAX_EVENTS // events.PAGE
