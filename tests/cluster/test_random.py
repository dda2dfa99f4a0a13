"""Random requests and releases of all kinds: nothing is allocated twice, no hold is lost, and "now" means now."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import Phase as Phases
from hypothesis import strategies as st

from allocations.domain.allocation_spec import AllocationRequest, Constraints
from allocations.domain.phases import Phase
from allocations.models import Allocation
from allocations.requests import details, services
from allocations.requests.preview import preview_request
from portal.tenants.models import Project, User
from tests.support.cluster import slices
from tests.support.cluster.allocations import ended, phase, wait_for
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.every_kind import offering_of
from tests.support.cluster.judge import over_allocated

pytestmark = pytest.mark.cluster

MIG = ("1g.10gb+me", "1g.20gb", "2g.20gb", "4g.40gb", "7g.80gb")
KINDS = (*slices.ROWS, *(slices.Row(f"MIG {p}", slices.DRA, "h100", f"mig-{p}", slices.HARDWARE) for p in MIG))
REQUESTS = st.builds(
    lambda kind, count, together: {"kind": kind, "count": count, "constraints": together},
    st.sampled_from(KINDS),
    st.integers(1, 4),
    st.sampled_from([(), (), ("same_gpu",), ("distinct_gpus",), ("same_pcie_root",)]),
)


def devices(row: Allocation) -> list[tuple[str, str]]:
    return [(d.node, d.device) for d in details.by_id([row])[row.pk].devices]


# Generated before the first request: a number releases the held allocation at that index.
SCRIPTS = st.lists(st.one_of(REQUESTS, REQUESTS, st.integers(0, 9)), min_size=10, max_size=10)
SUPPRESSED_CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=4, deadline=None, phases=[Phases.generate], suppress_health_check=SUPPRESSED_CHECKS)
@given(script=SCRIPTS)
def test_whatever_is_asked_and_released_the_cluster_gives_each_thing_once(
    script: list[dict[str, Any] | int],
    every_kind: dict[str, str],
    project: Project,
    member: User,
    admin: ApiClient,
) -> None:
    held: dict[Allocation, list[tuple[str, str]]] = {}
    for step in script:
        if isinstance(step, dict):
            if row := request_if_possible(member, project, every_kind, **step):
                held[row] = devices(row)
        elif held:
            row = list(held)[step % len(held)]
            del held[row]
            ended(member, row)
        assert over_allocated(admin) == []
        assert {row.name: phase(row) for row in held} == {row.name: Phase.ACTIVE for row in held}
        assert {row.name: devices(row) for row in held} == {
            row.name: held_devices for row, held_devices in held.items()
        }
    for row in held:
        ended(member, row)


def request_if_possible(
    member: User,
    project: Project,
    every_kind: dict[str, str],
    kind: slices.Row,
    count: int,
    constraints: tuple[str, ...],
) -> Allocation | None:
    """Request slices that the preview says can be held; withdraw requests that would wait; skip what never fits."""
    if "claim" in kind.body:
        count, constraints = 1, ()
    if not kind.named:
        constraints = ()
    spec = AllocationRequest.from_json(
        {
            "project": project.slug,
            "offering": offering_of(kind, every_kind),
            "count": count,
            "constraints": Constraints.named(constraints),
            **kind.body,
        }
    )
    preview = preview_request(member, spec)
    note(f"{preview.fits}: {spec}")
    if preview.fits == "never":
        return None
    row = services.request(member, spec)
    if preview.fits == "now":
        return wait_for(row, Phase.ACTIVE)
    ended(member, row)
    return None
