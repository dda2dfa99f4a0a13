"""The record of when allocations have pods."""

from datetime import datetime
from typing import Any

import pytest

from allocations.cluster import names
from allocations.cluster.kinds import KINDS
from allocations.models import Allocation
from allocations.reconcile.mirror_writer import record_list, record_observations
from portal.tenants.models import Project, Team, User
from quotas.metering import pod_times
from quotas.metering.models import HoldUse
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate, fleet
from tests.support.observed import at, hold_quota, holder, raw, seen
from tests.support.rows_read import executed

pytestmark = pytest.mark.django_db


@pytest.fixture
def train(team: Team, member: User, project: Project) -> Allocation:
    """Return an allocation of one l40s that is held."""
    fleet(team)
    row = allocate(member, project, name="train")
    watch(-60, hold_quota(row, 1))
    return row


def pod(row: Allocation, revision: int, name: str = "main", phase: str = "Running", node: str = "l40s-0") -> Any:
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return raw("Pod", row, name, revision, spec={"nodeName": node, "containers": [container]}, status={"phase": phase})


def watch(second: float, body: dict[str, Any], *, gone: bool = False) -> None:
    record_observations(LOCAL, [seen(body, second, gone=gone)])


def history() -> list[tuple[datetime, datetime | None]]:
    return list(HoldUse.objects.order_by("start").values_list("start", "end"))


def test_a_pod_is_there_from_its_node_until_it_has_finished(train: Allocation):
    watch(0, pod(train, 2, phase="Pending", node=""))
    watch(10, pod(train, 3))
    watch(60, pod(train, 4, phase="Succeeded"))
    watch(70, pod(train, 5, phase="Succeeded"), gone=True)
    assert history() == [(at(10), at(60))]


def test_several_pods_are_one_time_from_the_first_to_the_last(train: Allocation):
    watch(0, pod(train, 2, "one"))
    watch(10, pod(train, 3, "two"))
    watch(20, pod(train, 4, "one"), gone=True)
    watch(30, pod(train, 5, "two"), gone=True)
    watch(90, pod(train, 6, "three"))
    assert history() == [(at(0), at(30)), (at(90), None)]


def test_a_holder_pod_is_the_portals_own(train: Allocation):
    body = holder(train, 2)
    body["metadata"]["labels"][names.HOLDER] = "true"
    watch(0, body)
    assert history() == []


def test_a_pod_that_has_not_changed_takes_no_statement_more(train: Allocation):
    watch(0, pod(train, 2, "one"))
    counts = []
    for name in ("two", "three"):
        with executed() as statements:
            watch(10, pod(train, 3, name))
        counts.append([sql for sql, _ in statements if "holduse" in sql])
    assert counts == [[], []]


def test_a_list_of_pods_tells_what_no_change_has(train: Allocation):
    watch(0, pod(train, 2))
    HoldUse.objects.all().delete()
    record_list(LOCAL, KINDS["Pod"], [seen(pod(train, 2), 0, live=False)], 5, at(60))
    row = HoldUse.objects.get()
    assert (row.holder_id, row.estimated_start, row.end) == (train.pk, True, None)
    record_list(LOCAL, KINDS["Pod"], [], 9, at(120))
    row.refresh_from_db()
    assert (row.end, row.estimated_end) == (at(60), True)
    assert HoldUse.objects.count() == 1


def test_the_first_list_of_pods_tells_since_when_they_are_recorded(train: Allocation):
    for second in (60, 120):
        record_list(LOCAL, KINDS["Pod"], [], 5, at(second))
        assert pod_times.recorded_since([LOCAL]) == {LOCAL: at(60)}
    assert pod_times.of_holder(train.pk) == []
