"""The main path: slices on both backends, requested, admitted, held, used, released."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from allocations.cluster.names import hold_slot
from allocations.domain.phases import Outcome, Phase
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, MirrorObject
from allocations.requests import details, selectors
from portal.tenants.models import Project, User
from tests.support.cluster.allocations import ended, held, intervals, phase, reason, request_slices, wait_for
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.lent_projects import LentProjects
from tests.support.cluster.waiting import eventually
from tests.support.clusters import LOCAL

pytestmark = pytest.mark.cluster


def test_a_dra_hold_gets_devices_of_one_node_by_name(project: Project, member: User, admin: ApiClient) -> None:
    row = held(member, project, "h100/whole", 2)
    claim = admin.get("resourceclaim", row.name, project.namespace)
    results = claim["status"]["allocation"]["devices"]["results"]
    devices = details.by_id([row])[row.pk].devices
    assert {(d.node, d.device) for d in devices} == {(r["pool"], r["device"]) for r in results}
    assert len({d.node for d in devices}) == 1
    assert all(d.uuid.startswith("GPU-") for d in devices)
    assert selectors.reservation(row) == "device"


def test_a_device_plugin_hold_is_a_count_in_the_hold_quota(project: Project, member: User, admin: ApiClient) -> None:
    row = held(member, project, "l40s/whole", 2)
    hard = hold_quota(row, admin)["status"]["hard"]
    share = spec_of_row.resolved_spec(spec_of_row.rows().get(pk=row.pk)).node_share
    assert {name: amount for name, amount in hard.items() if amount != "0"} == {
        "pods": "32",
        "requests.nvidia.com/gpu": "2",
        **{f"requests.{name}": amount for name, amount in share.amounts.items()},
    }
    assert details.by_id([row])[row.pk].devices == ()
    assert selectors.reservation(row) == "count"


def test_the_cluster_says_since_when_a_count_is_in_force(project: Project, member: User) -> None:
    """By the managedFields of its quota, to the second."""
    row = held(member, project, "l40s/whole")
    mirrored = MirrorObject.objects.get(
        kind="ResourceQuota", namespace=project.namespace, name=hold_slot(row.number), cluster_id=LOCAL
    )
    written = datetime.fromisoformat(str(mirrored.facts["shown_at"]))
    assert row.created_at - timedelta(seconds=1) <= written <= intervals(row)[0].start


def hold_quota(row: Allocation, admin: ApiClient) -> dict[str, Any]:
    return admin.get("resourcequota", hold_slot(row.number), row.project.namespace)


@pytest.fixture(scope="module")
def released(member: User, lent_projects: LentProjects) -> Iterator[dict[str, Allocation]]:
    """Yield an allocation of each offering that was held and released, of which tests only look what became."""
    with lent_projects.lent() as project:
        yield {offering: ended(member, held(member, project, offering)) for offering in ("h100/whole", "l40s/whole")}


@pytest.mark.parametrize("offering", ["h100/whole", "l40s/whole"])
def test_release_leaves_nothing_behind(offering: str, released: dict[str, Allocation], admin: ApiClient) -> None:
    row = released[offering]
    assert row.outcome == Outcome.RELEASED
    assert admin.objects("workloads,resourceclaims,pods", row.project.namespace) == []
    guard = admin.get("gpuproject", "gpu-portal", row.project.namespace)
    assert guard["spec"]["allocations"] == {}
    assert set(hold_quota(row, admin)["spec"]["hard"].values()) == {"0"}
    assert all(interval.end for interval in intervals(row))


def test_kueue_knows_that_the_slices_are_held(project: Project, member: User, admin: ApiClient) -> None:
    row = held(member, project, "l40s/whole")

    def conditions() -> dict[str, str]:
        lease = admin.get("workload", f"{row.name}-lease", project.namespace)
        return {one["type"]: one["status"] for one in lease["status"]["conditions"]}

    eventually(lambda: conditions().get("PodsReady") == "True")


def test_the_ledger_charges_from_held_until_gone(released: dict[str, Allocation]) -> None:
    row = released["l40s/whole"]
    (interval,) = intervals(row)
    phases = {t.to_phase: t.at for t in row.transitions.filter(type="phase")}
    assert interval.start == row.held_at == phases[Phase.ACTIVE]
    assert interval.end is not None
    assert row.transitions.get(type="end").at <= interval.end <= phases[Phase.ENDED]
    assert not interval.estimated_start
    assert not interval.estimated_end


def test_every_transition_has_its_evidence(released: dict[str, Allocation]) -> None:
    row = released["h100/whole"]
    story = [(t.type, t.from_phase, t.to_phase) for t in row.transitions.order_by("id")]
    while_queued = ("phase", "queued", "queued")  # for each reason to wait that was seen: the cluster's speed decides
    assert while_queued in story
    assert [step for step in story if step != while_queued] == [
        ("requested", "", "queued"),
        ("phase", "queued", "starting"),
        ("phase", "starting", "active"),
        ("end", "active", "active"),
        ("phase", "active", "releasing"),
        ("phase", "releasing", "ended"),
    ]
    active = row.transitions.get(to_phase="active", type="phase")
    assert active.evidence["kind"] == "ResourceClaim"
    assert active.evidence["name"] == row.name
    assert active.evidence["resource_version"].isdigit()


def test_what_does_not_fit_now_queues_and_is_admitted_when_another_leaves(project: Project, member: User) -> None:
    first = held(member, project, "l40s/whole", 4)
    second = request_slices(member, project, "l40s/whole", 1)
    eventually(lambda: reason(second) == "WaitingForQuota")
    assert second.phase == Phase.QUEUED
    assert second.message.startswith("The team has used its quota. It starts when ")
    ended(member, first)
    wait_for(second, Phase.ACTIVE)


def test_a_queued_request_that_is_released_was_never_held(project: Project, member: User) -> None:
    first = held(member, project, "l40s/whole", 4)
    second = ended(member, request_slices(member, project, "l40s/whole", 1))
    assert second.outcome == Outcome.CANCELLED
    assert intervals(second) == []
    assert phase(first) == Phase.ACTIVE
