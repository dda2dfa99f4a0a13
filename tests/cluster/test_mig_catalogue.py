"""The portal's catalogue follows a node's MIG layout, which an administrator changes by its label."""

import pytest

from quotas.catalog.models import Node, Offering, PoolUse
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def added(one_more) -> dict[str, str]:
    return one_more("a100", "a30-single")


def total(pool: str) -> int:
    """Return the units of a pool in the portal's catalog."""
    return PoolUse.objects.get(pool__key=pool).total


def test_the_catalogue_follows_a_layout(added, cut):
    cut(added["a100"], "all-balanced")
    eventually(lambda: (total("a100/mig-1g.10gb"), total("a100/mig-3g.40gb")) == (32, 16))
    cut(added["a100"], "halves")
    eventually(lambda: (total("a100/mig-1g.10gb"), total("a100/mig-3g.40gb")) == (16, 24))


def test_the_catalogue_says_what_is_broken_and_takes_what_is_new(added, cut):
    node = added["a30-single"]
    cut(node, "all-balanced")
    eventually(lambda: "strategy single needs" in Node.objects.get(name=node).problem)
    assert Node.objects.get(name=node).flavor is None
    cut(node, "all-2g.12gb")
    eventually(lambda: Node.objects.filter(name=node, flavor__product="NVIDIA-A30-MIG-2g.12gb", problem="").exists())
    assert Offering.objects.filter(flavor__nodes__name=node, kind="mig", profile="2g.12gb").exists()
