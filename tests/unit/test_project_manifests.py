"""The manifests of a project's namespace, their order, and their labels."""

from dataclasses import replace

import pytest

from allocations.cluster.manifests.project import ProjectFacts, build, labels_left_behind, without_portal_fields
from portal.tenants import object_limits

NEW = ProjectFacts(
    *("old", "old", "vision", "research", "team-vision"),
    object_quota=object_limits.quota({}, is_adopted=False),
    other_pods=500,
    config_size_kib=128,
    people={"gpu-portal:tenant": ("ada",)},
)
ADOPTED = replace(NEW, adopted=True, guard_mode="audit")
ENFORCE = "pod-security.kubernetes.io/enforce"


def kinds(project):
    return [manifest["kind"] for manifest in build(project)]


def labels(project):
    return next(m for m in build(project) if m["kind"] == "Namespace")["metadata"]["labels"]


def test_a_new_namespace_is_labelled_before_anything_is_in_it():
    assert kinds(NEW)[:2] == ["Namespace", "GpuProject"]


def test_an_adopted_namespace_has_its_guards_data_before_the_guard_looks():
    assert kinds(ADOPTED)[:2] == ["GpuProject", "Namespace"]


@pytest.mark.parametrize("project", [NEW, ADOPTED])
def test_people_come_in_last(project):
    assert kinds(project)[-1] == "RoleBinding"


def test_under_warnings_pod_security_warns_too():
    assert ENFORCE not in labels(ADOPTED)
    assert labels(ADOPTED)["pod-security.kubernetes.io/warn"] == "restricted"
    assert labels(replace(ADOPTED, guard_mode="enforce"))[ENFORCE] == "restricted"


def test_a_queue_that_closes_admits_nothing_new():
    queues = [next(m for m in build(p) if m["kind"] == "LocalQueue") for p in (NEW, replace(NEW, is_closing=True))]
    assert [queue["spec"].get("stopPolicy") for queue in queues] == [None, "Hold"]


def test_a_namespace_that_is_given_back_keeps_its_pod_security_and_nothing_of_ours():
    assert set(labels_left_behind("old", "baseline", "enforce")["metadata"]["labels"].values()) == {"baseline"}
    assert without_portal_fields("old")["metadata"] == {"name": "old"}


@pytest.mark.parametrize(
    ("exposure", "load_balancers", "node_ports"),
    [
        ("cluster", "0", "0"),
        ("node-port", "0", "10"),
        ("load-balancer", "10", "10"),
    ],
)
def test_services_are_reached_from_where_an_operator_allows(exposure, load_balancers, node_ports):
    made = build(replace(NEW, exposure=exposure))
    (hard,) = (m["spec"]["hard"] for m in made if m["metadata"]["name"] == "gpu-portal-objects")
    assert labels(replace(NEW, exposure=exposure))["gpu-portal.io/exposure"] == exposure
    assert (hard["services.loadbalancers"], hard["services.nodeports"]) == (load_balancers, node_ports)


def test_the_numbers_and_the_size_that_an_operator_sets_are_in_quota_and_label():
    project = replace(NEW, object_quota=object_limits.quota({"configmaps": 300}, is_adopted=False), config_size_kib=64)
    (hard,) = (m["spec"]["hard"] for m in build(project) if m["metadata"]["name"] == "gpu-portal-objects")
    assert (hard["configmaps"], hard["secrets"]) == ("300", "200")
    assert labels(project)["gpu-portal.io/config-size-kib"] == "64"


def test_pods_without_a_priority_class_are_counted_by_a_quota_of_their_own():
    (spec,) = (m["spec"] for m in build(replace(NEW, other_pods=7)) if m["metadata"]["name"] == "gpu-portal-other-pods")
    (scope,) = spec["scopeSelector"]["matchExpressions"]
    assert spec["hard"] == {"pods": "7"}
    assert (scope["scopeName"], scope["operator"]) == ("PriorityClass", "DoesNotExist")
