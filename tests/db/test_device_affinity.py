"""The choice of GPUs for claims: made once, in the order of requests; shown by the claims themselves; dropped on
failure.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from allocations.cluster.backends import dra
from allocations.cluster.projectors import devices
from allocations.domain.objects import ObservedObject, Ref, Snapshot
from allocations.domain.observed import Deadlines
from allocations.domain.phases import Phase
from allocations.lifecycle import spec_of_row
from allocations.lifecycle.modes import hold
from allocations.models import Allocation, MirrorObject
from allocations.reconcile import device_affinity
from allocations.reconcile.mirror import MirrorStale
from portal.tenants.models import Project, Team, User
from tests.support.claim_rows import h100_node
from tests.support.clusters import LOCAL
from tests.support.divisible_fleet import NOW, member_of
from tests.support.fleet import allocate
from tests.support.mig_facts import device
from tests.support.people import person

pytestmark = pytest.mark.django_db
DEADLINES = Deadlines(timedelta(seconds=120), timedelta(seconds=60))


@pytest.fixture
def member(team: Team, project: Project) -> User:
    return member_of(team)


def asked(member: User, project: Project, profile: str, count: int = 1, **fields: Any) -> Allocation:
    row = allocate(member, project, f"h100/mig-{profile}", count, **fields)
    return spec_of_row.rows().get(pk=row.pk)


def taken(node: str, *devices: str) -> None:
    """Create claims of another user that have these devices."""
    MirrorObject.objects.create(
        cluster_id=LOCAL,
        kind="ResourceClaim",
        namespace="elsewhere",
        name=f"{node}-{len(devices)}-{devices[0]}",
        uid="u",
        resource_version=1,
        facts={"devices": [{"request": "a", "driver": "gpu.nvidia.com", "pool": node, "device": d} for d in devices]},
        seen_at=NOW,
    )


def update_affinity(
    row: Allocation, *seen: ObservedObject, admitted: bool = True, synced: int = 0, is_blocked: bool = False
) -> dict[str, Any]:
    """Return the row's affinity after one reconcile with these objects besides its lease."""
    view = Snapshot([*([lease(row)] if admitted else []), *seen], {"ResourceClaim": synced})
    wanted = spec_of_row.resolved_spec(row)
    situation = hold.assess(wanted, spec_of_row.intent(row), view, {}, NOW, DEADLINES)
    changed = device_affinity.update_affinity(row, wanted, view, situation, is_blocked=is_blocked)
    before, row = row.device_affinity, spec_of_row.rows().get(pk=row.pk)
    assert before == row.device_affinity
    again = spec_of_row.resolved_spec(row)
    assert changed or not device_affinity.update_affinity(row, again, view, situation, is_blocked=is_blocked)
    return row.device_affinity


def lease(row: Allocation) -> ObservedObject:
    facts = {
        "conditions": {"Admitted": {"status": "True", "at": NOW.isoformat()}},
        "cluster_queue": "team-vision",
    }
    return ObservedObject(
        Ref("Workload", row.project.namespace, f"{row.name}-lease"), "l", 7, allocation=row.name, facts=facts
    )


def claim(row: Allocation, gpus: Sequence[str], devices: Sequence[str] = ()) -> ObservedObject:
    facts = {"cards": list(gpus), "devices": [{"pool": "h100-0", "device": d} for d in devices]}
    return ObservedObject(
        Ref("ResourceClaim", row.project.namespace, row.name), "c", 9, allocation=row.name, facts=facts
    )


def holder(row: Allocation, **facts: Any) -> ObservedObject:
    return ObservedObject(
        Ref("Pod", row.project.namespace, f"{row.name}-holder"), "h", 10, allocation=row.name, facts=facts
    )


def test_nothing_is_chosen_before_it_is_admitted(member, project):
    assert update_affinity(asked(member, project, "1g.10gb"), admitted=False) == {}


def test_the_gpu_that_loses_least_is_chosen_once(member, project, django_assert_max_num_queries):
    taken("h100-1", device("gpu-1", "1g.10gb", 0))
    row = asked(member, project, "1g.10gb", 3)
    with django_assert_max_num_queries(12):
        assert update_affinity(row) == {"cards": ["GPU-h100-1-1"] * 3}
    taken("h100-1", device("gpu-1", "4g.40gb", 0))
    assert update_affinity(row) == {"cards": ["GPU-h100-1-1"] * 3}


def test_what_is_under_way_counts_and_what_it_got_counts_once(member, project):
    first, second = asked(member, project, "4g.40gb"), asked(member, project, "4g.40gb")
    assert update_affinity(first) == {"cards": ["GPU-h100-0-0"]}
    assert update_affinity(second) == {"cards": ["GPU-h100-0-1"]}
    taken("h100-0", device("gpu-0", "4g.40gb", 0))
    MirrorObject.objects.update(namespace=project.namespace, allocation=first.name)
    assert update_affinity(asked(member, project, "3g.40gb")) == {"cards": ["GPU-h100-0-0"]}


def test_where_nothing_fits_the_scheduler_decides(member, project):
    for node in ("h100-0", "h100-1"):
        taken(node, "gpu-0", "gpu-1")
    assert update_affinity(asked(member, project, "7g.80gb")) == {"given_up": True}


def test_a_holder_that_finds_no_device_gives_the_gpu_up(member, project):
    row = asked(member, project, "1g.10gb")
    gpu = update_affinity(row)["cards"]
    assert update_affinity(row, claim(row, gpu), holder(row, phase="Pending")) == {"cards": gpu}
    waiting = holder(row, phase="Pending", unschedulable="0/2 nodes are available: cannot allocate all claims")
    assert update_affinity(row, claim(row, gpu), waiting) == {"given_up": True}


def test_many_slices_whose_gpus_are_taken_are_given_others(member, project):
    row = asked(member, project, "1g.10gb", 6)
    gpus = update_affinity(row)["cards"]
    assert gpus == ["GPU-h100-0-0"] * 6
    taken("h100-0", "gpu-0")
    waiting = holder(row, phase="Pending", unschedulable="0/2 nodes are available: cannot allocate all claims")
    assert update_affinity(row, claim(row, gpus), waiting) == {"cards": ["GPU-h100-0-1"] * 6}


def test_many_whole_gpus_are_chosen_and_requested_one_by_one(team, project):
    h100_node(team, gpus=8)
    row = spec_of_row.rows().get(pk=allocate(person(team), project, "h100/whole", 8).pk)
    assert update_affinity(row, is_blocked=True) == {}
    gpus = update_affinity(row)["cards"]
    assert len({*gpus}) == 8
    row = spec_of_row.rows().get(pk=row.pk)
    (made, _) = dra.objects(spec_of_row.resolved_spec(row), Snapshot([]))
    assert devices.claim(made)["cards"] == gpus
    seen = claim(row, gpus)
    assert update_affinity(row, seen, is_blocked=True) == {"cards": gpus}
    assert update_affinity(row, is_blocked=True) == {}


def test_many_whole_gpus_that_others_have_chosen_are_chosen_last(team, project):
    h100_node(team, gpus=16)
    first, second = (
        spec_of_row.rows().get(pk=allocate(person(team), project, "h100/whole", count).pk) for count in (5, 3)
    )
    assert len(update_affinity(first)["cards"]) == 5
    assert update_affinity(second) == {}
    third = spec_of_row.rows().get(pk=allocate(person(team), project, "h100/whole", 5).pk)
    assert update_affinity(third) == update_affinity(first)


def test_once_taken_back_the_next_start_chooses_anew(member, project):
    row = asked(member, project, "1g.10gb")
    gpu = update_affinity(row)["cards"]
    assert update_affinity(row, claim(row, gpu), admitted=False) == {"cards": gpu}
    assert update_affinity(row, admitted=False) == {}


def test_a_row_that_was_lost_learns_from_its_claims(member, project):
    row = asked(member, project, "1g.10gb")
    Allocation.objects.filter(pk=row.pk).update(recovered=True)
    row.refresh_from_db(fields=["recovered"])
    held = claim(row, ["GPU-h100-1-1"], [device("gpu-1", "1g.10gb", 0)])
    with pytest.raises(MirrorStale):
        update_affinity(row)
    assert update_affinity(row, held) == {"cards": ["GPU-h100-1-1"]}


def test_a_row_that_was_lost_and_has_no_claim_chooses(member, project):
    row = asked(member, project, "1g.10gb")
    Allocation.objects.filter(pk=row.pk).update(recovered=True)
    row.refresh_from_db(fields=["recovered"])
    assert update_affinity(row, synced=7) == {"cards": ["GPU-h100-0-0"]}


def test_whole_gpus_are_not_steered(member, project):
    row = spec_of_row.rows().get(pk=allocate(member, project, "h100/whole").pk)
    assert update_affinity(row) == {}


def test_slices_of_one_clique_are_held_on_its_nodes(member, project):
    for node, clique in (("h100-0", "d.1"), ("h100-1", "d.2")):
        MirrorObject.objects.create(
            cluster_id=LOCAL,
            kind="Node",
            name=node,
            uid="n",
            resource_version=1,
            facts={"labels": {"nvidia.com/gpu.clique": clique}},
            seen_at=NOW,
        )
    taken("h100-0", "gpu-0")
    row = spec_of_row.rows().get(pk=allocate(member, project, "h100/whole", 2, constraints={"same_clique": True}).pk)
    assert update_affinity(row) == {"clique": "d.2"}
    assert Allocation.objects.get(pk=row.pk).phase == Phase.QUEUED
