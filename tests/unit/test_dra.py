"""Claims and holders of a hold by DRA: on one node, or one for each slice."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from allocations.cluster.backends import dra
from allocations.connect import sample_pod
from allocations.domain.allocation_spec import Constraints
from allocations.domain.objects import ObservedObject, Ref, Snapshot
from quotas.catalog.node_shares import NodeShare
from tests.support import request_specs

WHOLE = replace(
    request_specs.WHOLE,
    count=2,
    selectors=("device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H100 80GB HBM3'",),
)
SPREAD = replace(WHOLE, constraints=Constraints(spread=True))
EXACTLY = {
    "deviceClassName": "gpu.nvidia.com",
    "allocationMode": "ExactCount",
    "count": 1,
    "selectors": [{"cel": {"expression": WHOLE.selectors[0]}}],
}


def claim(name: str, *slices: int) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "namespace": "vision-train",
            "labels": {
                "gpu-portal.io/managed": "true",
                "app.kubernetes.io/managed-by": "gpu-portal",
                "gpu-portal.io/department": "research",
                "gpu-portal.io/team": "vision",
                "gpu-portal.io/project": "vision-train",
                "gpu-portal.io/allocation": "train",
            },
        },
        "spec": {"devices": {"requests": [{"name": f"slice-{n}", "exactly": EXACTLY} for n in slices]}},
    }


def seen(kind: str, name: str, *, deleting: bool = False, **facts: Any) -> ObservedObject:
    return ObservedObject(Ref(kind, "vision-train", name), f"uid-{name}", 1, "", "train", deleting, facts)


def allocated(name: str, node: str, device: str, *, deleting: bool = False) -> ObservedObject:
    at = "2026-03-01T00:00:00+00:00"
    return seen("ResourceClaim", name, deleting=deleting, devices=[{"pool": node, "device": device}], allocated_at=at)


def holder(name: str, phase: str = "Running", **facts: Any) -> ObservedObject:
    return seen("Pod", name, phase=phase, **facts)


ALL_SPREAD = (
    allocated("train.0", "h100-0", "gpu-3"),
    allocated("train.1", "h100-1", "gpu-0"),
    holder("train.0-holder"),
    holder("train.1-holder"),
)


def test_slices_on_one_node_are_requests_of_one_claim():
    made = dra.objects(WHOLE, Snapshot())
    assert made[0] == claim("train", 0, 1)
    assert [m["metadata"]["name"] for m in made] == ["train", "train-holder"]


def test_spread_slices_are_a_claim_each():
    made = dra.objects(SPREAD, Snapshot())
    assert made[0::2] == [claim("train.0", 0), claim("train.1", 1)]
    assert [m["metadata"]["name"] for m in made[1::2]] == ["train.0-holder", "train.1-holder"]


@pytest.mark.parametrize("clique", ["7f1c.3", ""])
def test_what_is_to_share_an_nvlink_clique_starts_in_it_or_nowhere(clique: str):
    together = replace(SPREAD, constraints=Constraints(spread=True, same_clique=True), clique=clique)
    selectors = [made["spec"]["nodeSelector"] for made in dra.objects(together, Snapshot())[1::2]]
    assert [selector["nvidia.com/gpu.clique"] for selector in selectors] == [clique, clique]


def test_each_holder_uses_its_own_claim():
    holders = dra.objects(SPREAD, Snapshot())[1::2]
    assert [h["spec"]["resourceClaims"] for h in holders] == [
        [{"name": "gpu-portal", "resourceClaimName": f"train.{n}"}] for n in range(2)
    ]


def test_spread_slices_are_held_once_all_are():
    assert [(s.node, s.device) for s in dra.held(SPREAD, Snapshot(ALL_SPREAD))] == [
        ("h100-0", "gpu-3"),
        ("h100-1", "gpu-0"),
    ]


def test_all_began_when_the_last_was_ready():
    late = holder("train.1-holder", ready_at="2026-03-01T00:00:09+00:00")
    held = dra.held(SPREAD, Snapshot([*ALL_SPREAD[:3], late]))
    assert {s.since for s in held} == {datetime(2026, 3, 1, 0, 0, 9, tzinfo=UTC)}


@pytest.mark.parametrize("missing", range(4))
def test_spread_slices_are_not_held_while_one_thing_is_missing(missing):
    there = [found for n, found in enumerate(ALL_SPREAD) if n != missing]
    assert dra.held(SPREAD, Snapshot(there)) == ()


def test_what_is_occupied_counts_by_claim():
    (one,) = dra.occupied(SPREAD, Snapshot(ALL_SPREAD[1:]))
    assert (one.slot, one.evidence) == ("h100-1/gpu-0", Ref("ResourceClaim", "vision-train", "train.1"))


def test_a_deleted_claim_takes_its_own_holder_along_and_no_other():
    view = Snapshot([allocated("train.0", "h100-0", "gpu-3", deleting=True), *ALL_SPREAD[1:]])
    assert dra.is_claim_deleted(SPREAD, view)
    names = [m["metadata"]["name"] for m in dra.objects(SPREAD, view)]
    assert names == ["train.0", "train.1", "train.1-holder"]


def test_holders_go_before_claims():
    groups = [[ref.name for ref in group] for group in dra.leftovers(SPREAD)]
    assert groups == [["train.0-holder", "train.1-holder"], ["train.0", "train.1"]]


def test_what_blocks_one_holder_blocks_all():
    waiting = holder("train.1-holder", "Pending", unschedulable="0/14 nodes are available")
    assert dra.blocked_by(SPREAD, Snapshot([*ALL_SPREAD[:3], waiting])) == "0/14 nodes are available"


def test_the_guard_is_told_the_claims():
    assert dra.guard_entry(WHOLE)["claim"] == "train"
    assert dra.guard_entry(SPREAD)["claims"] == ["train.0", "train.1"]
    assert "claims" not in dra.guard_entry(WHOLE)
    assert "claim" not in dra.guard_entry(SPREAD)


def test_the_pod_to_begin_with_names_a_slice_where_there_are_several_claims():
    assert "annotations" not in sample_pod.build(WHOLE)["metadata"]
    assert sample_pod.build(SPREAD)["metadata"]["annotations"] == {"gpu-portal.io/slices": "0"}


@pytest.mark.parametrize(
    ("spec", "amounts"),
    [
        (WHOLE, {"cpu": "23250m", "memory": "255000Mi"}),
        (SPREAD, {"cpu": "11625m", "memory": "127500Mi"}),
        (request_specs.L40S, {"cpu": "30380m", "memory": "252886Mi"}),
        (replace(request_specs.L40S, kind="shared"), {"cpu": "15190m", "memory": "126443Mi"}),
        (replace(WHOLE, kind="shared"), {"cpu": "23250m", "memory": "255000Mi"}),
        (replace(WHOLE, node_share=NodeShare(pods=16)), {"cpu": "100m", "memory": "256Mi"}),
    ],
    ids=[
        "of all slices",
        "of one of several claims",
        "by device plugin",
        "of one of several shares",
        "of shares by DRA",
        "of a node that has not told its capacity",
    ],
)
def test_the_pod_to_begin_with_asks_for_what_goes_with_its_slices(spec, amounts):
    assert sample_pod.build(spec)["spec"]["containers"][0]["resources"] == {"requests": amounts}


def test_by_device_plugin_the_pod_names_none():
    plugin = replace(SPREAD, path="device-plugin", resource="nvidia.com/gpu")
    assert "annotations" not in sample_pod.build(plugin)["metadata"]
