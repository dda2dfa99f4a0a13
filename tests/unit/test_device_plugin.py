"""Slices by device plugin: the count in the hold quota, and what pods use beyond it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from allocations.cluster.backends import device_plugin
from allocations.cluster.kinds import KINDS
from allocations.cluster.manifests import hold_quota
from allocations.domain.objects import ObservedObject, Ref, Snapshot
from tests.support.request_specs import L40S

GPU = "nvidia.com/gpu"
SLOT = replace(L40S, number=7)


def pod(uid: str, gpus: int, **facts: Any) -> ObservedObject:
    known = {"class": "gpu-portal-hold-slot.7", "gpus": {GPU: gpus}, "phase": "Running", "node": "l40s-0", **facts}
    return ObservedObject(Ref("Pod", SLOT.namespace, uid), uid, 15, allocation=SLOT.name, facts=known)


def held(pods: Iterable[ObservedObject]) -> list[tuple[str, int]]:
    """Return slots and counts of all that is held in addition to these pods."""
    body = hold_quota.build(SLOT.namespace, 7, {}, hold_quota.hold(SLOT, {GPU: 2}), [GPU])
    facts = KINDS["ResourceQuota"].projector({**body, "status": {"hard": body["spec"]["hard"]}})
    quota = ObservedObject(Ref.of_manifest(body), "u-quota", 14, facts=facts or {})
    slices = device_plugin.held(SLOT, Snapshot([quota, *pods]))
    return [(one.slot.removeprefix(f"{SLOT.id}"), one.count) for one in slices]


def test_the_count_is_held_whether_pods_use_it_or_not() -> None:
    assert held([]) == held([pod("a", 1), pod("b", 1)]) == [("", 2)]


def test_what_a_pod_has_beyond_the_count_is_held_too() -> None:
    assert held([pod("a", 2), pod("b", 2)]) == [("", 2), ("/pod:b/2", 2)]
    assert held([pod("a", 1), pod("b", 2), pod("c", 1)]) == [("", 2), ("/pod:b/1", 1), ("/pod:c/1", 1)]


def test_a_pod_that_is_ending_has_its_gpus_still() -> None:
    assert held([pod("a", 2, ends_by="2026-01-01T00:00:00+00:00"), pod("b", 1)]) == [("", 2), ("/pod:b/1", 1)]


def test_a_pod_that_is_not_bound_or_has_finished_has_none() -> None:
    assert held([pod("a", 2), pod("b", 2, node=""), pod("c", 2, phase="Failed")]) == [("", 2)]


def test_a_pod_of_its_class_without_its_label_counts() -> None:
    assert held([pod("a", 2), replace(pod("b", 1), allocation="")]) == [("", 2), ("/pod:b/1", 1)]


def test_nothing_is_held_once_no_quota_lists_it() -> None:
    assert device_plugin.occupied(SLOT, Snapshot([pod("a", 2)])) == ()
