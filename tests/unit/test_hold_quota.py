"""The hold quota of one allocation: its owner, and whether it is in force."""

from dataclasses import replace
from typing import Any

import pytest

from allocations.cluster.kinds import KINDS
from allocations.cluster.manifests import hold_quota
from allocations.domain.objects import ObservedObject, Ref, Snapshot
from quotas.catalog.node_shares import NodeShare
from tests.support.request_specs import L40S

GPU = "nvidia.com/gpu"
COUNTED = {GPU: 2}
SLOT = replace(L40S, number=7)
NAME = "gpu-portal-hold-slot.7"


def raw(hold: hold_quota.Hold | None, status: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the quota as the API server has it; without ``status`` its controller is up to date."""
    manifest = hold_quota.build("vision-train", 7, {}, hold, ["nvidia.com/gpu.shared", GPU])
    return {**manifest, "status": {"hard": manifest["spec"]["hard"] if status is None else status}}


def seen(body: dict[str, Any]) -> ObservedObject:
    facts = KINDS["ResourceQuota"].projector(body)
    return ObservedObject(Ref.of_manifest(body), "u-quota", 14, facts=facts or {})


def pod(hold_class: str, gpus: int, *, phase: str = "Running", allocation: str = "train") -> ObservedObject:
    facts = {"class": hold_class, "gpus": {GPU: gpus}, "phase": phase}
    return ObservedObject(
        Ref("Pod", "vision-train", f"p-{hold_class}-{gpus}"), "u-pod", 15, allocation=allocation, facts=facts
    )


HOLD = hold_quota.hold(SLOT, COUNTED)


def test_it_bounds_the_slices_and_the_pods_of_its_own_class_alone() -> None:
    body = raw(HOLD)
    counts = {key: body["spec"]["hard"][key] for key in ("pods", f"requests.{GPU}", "requests.nvidia.com/gpu.shared")}
    assert counts == {"pods": "32", f"requests.{GPU}": "2", "requests.nvidia.com/gpu.shared": "0"}
    assert body["spec"]["scopeSelector"]["matchExpressions"][0]["values"] == [NAME]


def test_it_bounds_the_cpu_and_memory_of_all_its_pods_by_what_goes_with_its_slices() -> None:
    hard = raw(HOLD)["spec"]["hard"]
    assert {key: hard[key] for key in ("requests.cpu", "requests.memory")} == {
        "requests.cpu": "30380m",
        "requests.memory": "252886Mi",
    }


def test_where_no_node_tells_what_it_has_it_bounds_no_cpu() -> None:
    unknown = hold_quota.hold(replace(SLOT, node_share=NodeShare(pods=32)), COUNTED)
    assert {key for key in raw(unknown)["spec"]["hard"] if not key.startswith("requests.deviceclass")} == {
        "pods",
        f"requests.{GPU}",
        "requests.nvidia.com/gpu.shared",
    }


def test_gpus_asked_for_by_the_name_of_their_device_class_are_in_no_hold() -> None:
    implicit = {key: amount for key, amount in raw(HOLD)["spec"]["hard"].items() if "deviceclass" in key}
    classes = ("gpu.nvidia.com", "mig.nvidia.com")
    assert implicit == {f"requests.deviceclass.resource.kubernetes.io/{name}": "0" for name in classes}


def test_it_binds_however_kubernetes_writes_the_amounts() -> None:
    body = raw(hold_quota.Hold("train", {GPU: 1}, NodeShare(15_000, 1024, 16)))
    body["status"] = {"hard": {**body["spec"]["hard"], "requests.cpu": "15", "requests.memory": "1Gi"}}
    assert hold_quota.is_shown(SLOT, Snapshot([seen(body)]))
    body["status"]["hard"]["requests.cpu"] = "15500m"
    assert not hold_quota.is_shown(SLOT, Snapshot([seen(body)]))


def test_without_an_allocation_it_is_zero_of_everything() -> None:
    assert set(raw(None)["spec"]["hard"].values()) == {"0"}


@pytest.mark.parametrize(
    ("status", "binds"),
    [({}, False), ({"pods": "0", f"requests.{GPU}": "0", "requests.nvidia.com/gpu.shared": "0"}, False), (None, True)],
    ids=["no status yet", "the status of before", "the status follows"],
)
def test_it_binds_once_its_status_follows_its_spec(status: dict[str, str] | None, binds: bool) -> None:
    view = Snapshot([seen(raw(HOLD, status))])
    assert hold_quota.is_listed(SLOT, view)
    assert hold_quota.is_shown(SLOT, view) == binds


def test_a_quota_at_zero_lists_nobody() -> None:
    view = Snapshot([seen(raw(None))])
    assert not hold_quota.is_listed(SLOT, view)
    assert not hold_quota.is_shown(SLOT, view)


def test_a_thousand_is_read_as_kubernetes_writes_it() -> None:
    body = raw(hold_quota.Hold("train", {GPU: 1000}, NodeShare(pods=16_000)))
    body["status"] = {"hard": {**body["spec"]["hard"], f"requests.{GPU}": "1k", "pods": "16k"}}
    assert hold_quota.is_shown(SLOT, Snapshot([seen(body)]))
