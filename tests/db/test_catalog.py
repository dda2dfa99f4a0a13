"""The stored catalog: written once, never deleted, read in few queries."""

from dataclasses import replace

import pytest

from portal.clusters.models import Cluster
from portal.tenants.actors import SYSTEM
from quotas.catalog import selectors, services
from quotas.catalog.discovery import Discovered, discover
from quotas.catalog.models import Device, Flavor, Node, Offering, Pool, PoolUse
from quotas.catalog.sync import sync
from tests.support.clusters import LOCAL, make_cluster
from tests.support.gpu_facts import dra_node, gpu, slices_of
from tests.support.quotas import cluster, found, l40s_nodes, mig_node
from tests.support.rows_read import executed

pytestmark = pytest.mark.django_db


def queries(call) -> list[str]:
    with executed() as captured:
        call()
    return [sql for sql, _ in captured]


def writes(sql: list[str]) -> list[str]:
    return [query for query in sql if query.startswith(("INSERT", "UPDATE", "DELETE"))]


def test_what_is_found_is_written():
    local = Cluster.objects.get(slug=LOCAL)
    assert sync(local.slug, found(), {"l40s/whole": 1, "a100/mig-1g.10gb": 3, "gone/whole": 9}) is True
    assert list(Pool.objects.values_list("key", "use__total", "use__foreign")) == [
        ("a100/mig-1g.10gb", 16, 3),
        ("a100/mig-3g.40gb", 8, 0),
        ("l40s/gpu", 8, 1),
    ]
    assert list(Node.objects.values_list("name", "flavor__name", "ready", "tainted", "problem")) == [
        ("a100-0", "a100", True, True, ""),
        ("l40s-0", "l40s", True, True, ""),
        ("l40s-1", "l40s", True, True, ""),
    ]
    assert [selectors.units(pool) for pool in selectors.pools()] == [13, 8, 7]


def test_a_second_sync_of_the_same_facts_writes_nothing():
    local = cluster()
    sql = queries(lambda: sync(local.slug, found(), {}))
    assert writes(sql) == []
    assert sync(local.slug, found(), {}) is False


def test_only_new_or_different_flavors_and_pools_are_a_change():
    local = cluster(*l40s_nodes(1))
    assert sync(local.slug, found(*l40s_nodes(2)), {}) is False
    assert sync(local.slug, found(*l40s_nodes(2), mig_node()), {}) is True
    assert sync(local.slug, found(*l40s_nodes(2, gpu_family="ada"), mig_node()), {}) is True
    assert Flavor.objects.get(name="l40s").architecture == "ada"


def test_what_vanishes_stays_with_nothing_in_it():
    local = cluster()
    assert sync(local.slug, Discovered(), {}) is False
    assert Offering.objects.count() == 3
    assert set(PoolUse.objects.values_list("total", flat=True)) == {0}
    assert not Node.objects.filter(present=True).exists()
    assert {selectors.units(pool) for pool in selectors.pools()} == {0}

    sync(local.slug, found(), {})
    assert Node.objects.filter(present=True).count() == 3
    assert Pool.objects.get(key="l40s/gpu").use.total == 8


def test_devices_come_go_and_come_back():
    local = Cluster.objects.get(slug=LOCAL)
    both = discover([dra_node()], [slices_of("h100-0", gpu(0), gpu(1))])
    one = discover([dra_node()], [slices_of("h100-0", gpu(0, taints=(("xid", "79", "NoExecute"),)))])
    sync(local.slug, both, {})
    sync(local.slug, one, {})
    assert list(Device.objects.values_list("name", "healthy", "present")) == [
        ("gpu-0", False, True),
        ("gpu-1", True, False),
    ]
    sync(local.slug, both, {})
    assert set(Device.objects.values_list("healthy", "present")) == {(True, True)}


def test_a_node_that_is_not_offered_is_kept_with_its_problem():
    bare = [replace(node, taints=()) for node in l40s_nodes(1)]
    cluster(*bare)
    node = Node.objects.get()
    assert (node.flavor, node.tainted) == (None, False)
    assert "kubectl taint" in node.problem


def test_queries_do_not_grow_with_what_is_found():
    local = cluster()
    few = queries(lambda: sync(local.slug, found(*l40s_nodes(3), mig_node()), {}))
    many = queries(lambda: sync(local.slug, found(*l40s_nodes(60), mig_node(), mig_node("a100-1")), {}))
    assert len(many) <= len(few) + 1  # one more UPDATE, for the MIG pools that changed too


def test_a_sync_leaves_what_people_decided():
    local = cluster()
    services.configure_flavor(SYSTEM, Flavor.objects.get(name="l40s"), {"hidden": True, "start_deadline_s": 60})
    sync(local.slug, found(*l40s_nodes(2, gpu_family="ada")), {})
    flavor = Flavor.objects.get(name="l40s")
    assert (flavor.hidden, flavor.start_deadline_s, flavor.architecture) == (True, 60, "ada")


def test_names_of_this_and_of_other_clusters():
    local = cluster()
    far = make_cluster()
    known, taken = selectors.known_names(local.slug)
    assert (set(known.values()), taken) == ({"a100", "l40s"}, frozenset())
    known, taken = selectors.known_names(far.slug)
    assert (len(known), taken) == (0, frozenset({"a100", "l40s"}))
    there = discover(l40s_nodes(1), [], known, taken)
    sync(far.slug, there, {})
    assert list(Flavor.objects.filter(cluster=far).values_list("name", flat=True)) == ["l40s-45gb"]


def test_slices_that_fit_into_units():
    unit = {"compute": 7, "memory": 8}
    assert selectors.fitting_slices(2, unit, unit) == 2
    assert selectors.fitting_slices(1, unit, {"compute": 1, "memory": 1}) == 7
    assert selectors.fitting_slices(1, unit, {"other": 1}) == 0
