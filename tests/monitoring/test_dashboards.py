"""Each query of the dashboards has an answer from a Prometheus that scrapes the running portal."""

import json
from collections.abc import Iterator

import pytest
import requests

from allocations.domain.phases import Phase
from portal.tenants.models import Project, User
from tests.monitoring import MONITORING, Query
from tests.support.cluster.allocations import ended, held, request_slices, wait_for
from tests.support.cluster.waiting import eventually

PANELS = [
    pytest.param(target["expr"], id=f"{panel['title']}-{target['refId']}")
    for path in sorted(MONITORING.glob("dashboards/*.json"))
    for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]
    for target in panel["targets"]
]


@pytest.fixture(scope="module", autouse=True)
def used(live_database: None) -> Iterator[None]:
    """Hold an allocation, and have another one wait for quota."""
    member, project = User.objects.get(username="vision-member"), Project.objects.get(slug="vision-train")
    active = held(member, project, "l40s/whole", count=4)
    queued = wait_for(request_slices(member, project, "l40s/whole"), Phase.QUEUED)
    yield
    ended(member, queued)
    ended(member, active)


@pytest.mark.parametrize("expression", PANELS)
def test_a_panel_has_something_to_show(expression: str, query: Query) -> None:
    """The watcher tells its clock, and the worker etcd's size, once a minute."""
    eventually(lambda: query(expression.replace("$team", ".*")), within_s=150)


def test_every_rule_is_evaluated(prometheus: str) -> None:
    def health() -> set[str]:
        groups = requests.get(f"http://{prometheus}/api/v1/rules", timeout=10).json()["data"]["groups"]
        return {rule["health"] for group in groups for rule in group["rules"]}

    eventually(lambda: health() == {"ok"})
