"""Limits: set, lowered, and read as headroom."""

import pytest

from portal.core.errors import Invalid
from portal.core.models import WorkItem
from portal.tenants.actors import SYSTEM
from quotas.catalog.models import Pool
from quotas.limits import seeds, selectors, services
from quotas.limits.models import Limit
from tests.support.quotas import cluster, l40s_nodes

pytestmark = pytest.mark.django_db


@pytest.fixture
def pool(db: None) -> Pool:
    cluster()
    return Pool.objects.get(key="l40s/gpu")


def test_a_limit_is_set_changed_and_remembered(team, pool):
    services.set_limit(SYSTEM, team, pool, 4)
    WorkItem.objects.all().delete()
    services.set_limit(SYSTEM, team, pool, 6)
    assert list(Limit.objects.values_list("team__slug", "pool__key", "nominal")) == [("vision", "l40s/gpu", 6)]
    assert list(Limit.history.order_by("history_id").values_list("nominal", flat=True)) == [4, 6]
    assert WorkItem.objects.filter(target="local/platform").exists()


def test_the_same_limit_again_changes_nothing(team, pool):
    services.set_limit(SYSTEM, team, pool, 4)
    WorkItem.objects.all().delete()
    services.set_limit(SYSTEM, team, pool, 4)
    assert Limit.history.count() == 1
    assert not WorkItem.objects.exists()


@pytest.mark.parametrize("nominal", [-1, 1_000_001])
def test_a_limit_out_of_range_is_refused(team, pool, nominal):
    with pytest.raises(Invalid) as caught:
        services.set_limit(SYSTEM, team, pool, nominal)
    assert "nominal" in caught.value.errors
    assert not Limit.objects.exists()


def test_each_team_gets_half_of_every_pool_once(team, other_team, pool):
    services.set_limit(SYSTEM, team, pool, 1)
    assert seeds.seed_half_quotas() == 5
    assert seeds.seed_half_quotas() == 0
    assert list(Limit.objects.values_list("team__slug", "pool__key", "nominal")) == [
        ("language", "a100/mig-1g.10gb", 8),
        ("language", "a100/mig-3g.40gb", 4),
        ("language", "l40s/gpu", 4),
        ("vision", "a100/mig-1g.10gb", 8),
        ("vision", "a100/mig-3g.40gb", 4),
        ("vision", "l40s/gpu", 1),
    ]


def test_manifests_of_a_cluster_in_constant_queries(team, other_team, django_assert_num_queries):
    local = cluster(*l40s_nodes())
    services.set_limit(SYSTEM, team, Pool.objects.get(), 5)
    with django_assert_num_queries(1):
        made = selectors.manifests(local.slug)
    assert [(manifest["kind"], manifest["metadata"]["name"]) for manifest in made] == [
        ("Cohort", "dept-research"),
        ("ResourceFlavor", "l40s"),
        ("ClusterQueue", "team-language"),
        ("ClusterQueue", "team-vision"),
    ]
    quotas = [queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"] for queue in made[2:]]
    assert quotas == [
        [{"name": "nvidia.com/gpu", "nominalQuota": nominal, "borrowingLimit": "0"}] for nominal in ("0", "5")
    ]
