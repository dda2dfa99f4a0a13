"""Limits as Kueue objects, compared whole."""

from decimal import Decimal
from itertools import permutations

import pytest

from quotas.limits.projection import (
    FlavorShape,
    NotRepresentable,
    Policy,
    PoolShape,
    cluster_queue,
    cohort,
    resource_flavor,
    resource_groups,
)
from quotas.limits.tree import Quota

SLICES = {"gpu-portal.io/compute-slices": 7, "gpu-portal.io/memory-slices": 8}
DEMO = [
    PoolShape("h100/slices", "h100", SLICES),
    PoolShape("l40s/gpu", "l40s", {"nvidia.com/gpu": 1}),
    PoolShape("a100/mig-2g.20gb", "a100", {"nvidia.com/mig-2g.20gb": 1}),
    PoolShape("a100/mig-1g.10gb", "a100", {"nvidia.com/mig-1g.10gb": 1}),
]


def quota(resource: str, nominal: str) -> dict:
    return {"name": resource, "nominalQuota": nominal, "borrowingLimit": "0"}


def own(**nominal: int) -> dict[str, Quota]:
    return {pool: Quota(units) for pool, units in nominal.items()}


def test_queue_of_a_team():
    queue = cluster_queue("vision", "research", DEMO, own(**{"h100/slices": 8, "l40s/gpu": 4, "a100/mig-1g.10gb": 8}))
    assert queue == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "team-vision"},
        "spec": {
            "cohortName": "dept-research",
            "namespaceSelector": {"matchLabels": {"gpu-portal.io/team": "vision"}},
            "queueingStrategy": "BestEffortFIFO",
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "Never"},
            "fairSharing": {"weight": "1"},
            "resourceGroups": [
                {
                    "coveredResources": ["nvidia.com/mig-1g.10gb", "nvidia.com/mig-2g.20gb"],
                    "flavors": [
                        {
                            "name": "a100",
                            "resources": [
                                quota("nvidia.com/mig-1g.10gb", "8"),
                                quota("nvidia.com/mig-2g.20gb", "0"),
                            ],
                        }
                    ],
                },
                {
                    "coveredResources": ["gpu-portal.io/compute-slices", "gpu-portal.io/memory-slices"],
                    "flavors": [
                        {
                            "name": "h100",
                            "resources": [
                                quota("gpu-portal.io/compute-slices", "56"),
                                quota("gpu-portal.io/memory-slices", "64"),
                            ],
                        }
                    ],
                },
                {
                    "coveredResources": ["nvidia.com/gpu"],
                    "flavors": [{"name": "l40s", "resources": [quota("nvidia.com/gpu", "4")]}],
                },
            ],
        },
    }


def test_flavors_that_share_a_resource_are_one_group_with_zero_for_what_they_lack():
    pools = [
        PoolShape("a100/gpu", "a100", {"nvidia.com/gpu": 1}),
        PoolShape("a100/mig-1g.10gb", "a100", {"nvidia.com/mig-1g.10gb": 1}),
        PoolShape("l40s/gpu", "l40s", {"nvidia.com/gpu": 1}),
        PoolShape("t4/gpu.shared", "t4", {"nvidia.com/gpu.shared": 1}),
    ]
    limits = own(**{"a100/gpu": 2, "a100/mig-1g.10gb": 7, "l40s/gpu": 3, "t4/gpu.shared": 1})
    assert resource_groups(pools, limits) == [
        {
            "coveredResources": ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb"],
            "flavors": [
                {
                    "name": "a100",
                    "resources": [quota("nvidia.com/gpu", "2"), quota("nvidia.com/mig-1g.10gb", "7")],
                },
                {
                    "name": "l40s",
                    "resources": [quota("nvidia.com/gpu", "3"), quota("nvidia.com/mig-1g.10gb", "0")],
                },
            ],
        },
        {
            "coveredResources": ["nvidia.com/gpu.shared"],
            "flavors": [{"name": "t4", "resources": [quota("nvidia.com/gpu.shared", "1")]}],
        },
    ]


def test_groups_join_through_a_third_flavor():
    pools = [
        PoolShape("a/x", "a", {"x": 1}),
        PoolShape("b/y", "b", {"y": 1}),
        PoolShape("c/x", "c", {"x": 1}),
        PoolShape("c/y", "c", {"y": 1}),
    ]
    (group,) = resource_groups(pools, {})
    assert group["coveredResources"] == ["x", "y"]
    assert [flavor["name"] for flavor in group["flavors"]] == ["a", "b", "c"]


def test_the_order_of_pools_does_not_matter():
    limits = own(**{"h100/slices": 1, "a100/mig-1g.10gb": 3})
    expected = cluster_queue("vision", "research", DEMO, limits)
    assert all(cluster_queue("vision", "research", order, limits) == expected for order in permutations(DEMO))


def test_a_team_without_pools_has_an_empty_queue():
    assert cluster_queue("vision", "research", [], {})["spec"]["resourceGroups"] == []


def test_cohort_of_a_department():
    assert cohort("research") == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Cohort",
        "metadata": {"name": "dept-research"},
        "spec": {"fairSharing": {"weight": "1"}},
    }


def test_a_department_alone_has_no_bounds_even_of_what_its_flavors_lack():
    pools = [
        PoolShape("a100/gpu", "a100", {"nvidia.com/gpu": 1}),
        PoolShape("a100/mig-1g.10gb", "a100", {"nvidia.com/mig-1g.10gb": 1}),
        PoolShape("l40s/gpu", "l40s", {"nvidia.com/gpu": 1}),
    ]
    [group] = cohort("research", None, pools, {"l40s/gpu": Quota(2, None, None)})["spec"]["resourceGroups"]
    assert [flavor["resources"] for flavor in group["flavors"]] == [
        [{"name": "nvidia.com/gpu", "nominalQuota": "0"}, {"name": "nvidia.com/mig-1g.10gb", "nominalQuota": "0"}],
        [{"name": "nvidia.com/gpu", "nominalQuota": "2"}, {"name": "nvidia.com/mig-1g.10gb", "nominalQuota": "0"}],
    ]


def test_a_department_within_another_borrows_and_lends_what_it_may():
    pools = [PoolShape("l40s/gpu", "l40s", {"nvidia.com/gpu": 1})]
    made = cohort("vision", "dept-research", pools, {"l40s/gpu": Quota(2, 3, 1)}, Policy(weight=Decimal("0.5")))
    assert made["spec"] == {
        "parentName": "dept-research",
        "resourceGroups": [
            {
                "coveredResources": ["nvidia.com/gpu"],
                "flavors": [
                    {
                        "name": "l40s",
                        "resources": [{**quota("nvidia.com/gpu", "2"), "borrowingLimit": "3", "lendingLimit": "1"}],
                    }
                ],
            }
        ],
        "fairSharing": {"weight": "500m"},
    }


def test_who_borrows_without_a_bound_has_none_written_down():
    pools = [PoolShape("l40s/gpu", "l40s", {"nvidia.com/gpu": 1})]
    [group] = cluster_queue("vision", "research", pools, {"l40s/gpu": Quota(4, None)})["spec"]["resourceGroups"]
    assert group["flavors"][0]["resources"] == [{"name": "nvidia.com/gpu", "nominalQuota": "4"}]


def test_flavor_carries_node_labels_and_tolerations():
    toleration = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert resource_flavor(FlavorShape("l40s", {"nvidia.com/gpu.product": "NVIDIA-L40S"}, [toleration])) == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "l40s"},
        "spec": {"nodeLabels": {"nvidia.com/gpu.product": "NVIDIA-L40S"}, "tolerations": [toleration]},
    }


@pytest.mark.parametrize(
    "pools",
    [
        [PoolShape(f"f{n}/r{n}", f"f{n}", {f"r{n}": 1}) for n in range(17)],
        [PoolShape(f"f/r{n}", "f", {f"r{n}": 1}) for n in range(65)],
        [PoolShape(f"f{n}/r", f"f{n}", {"r": 1}) for n in range(65)],
    ],
    ids=["groups", "resources", "flavors"],
)
def test_more_than_kueue_takes_is_refused(pools):
    with pytest.raises(NotRepresentable, match="Kueue takes"):
        resource_groups(pools, {})
