"""The fleet with a node of every kind, all flavors accepted and shared out: a fixture for whole modules of tests."""

from collections.abc import Collection

import pytest
from django.core.management import call_command

from quotas.catalog.models import Node, Pool
from tests.cluster import slices
from tests.cluster.hardware import Switch
from tests.cluster.waiting import eventually


@pytest.fixture(scope="module")
def nodes(one_more: Switch) -> dict[str, str]:
    """A node of each kind, its flavor accepted and each team given half of it: {kind of node: name}."""
    names = {"h100": "h100-0", "a100": "a100-0", "l40s": "l40s-0", "t4": "t4-0", **one_more(*slices.SWITCHED_ON)}
    eventually(lambda: is_counted(names.values()))
    call_command("accept_flavors", "--all", "--share")
    return names


def is_counted(names: Collection[str]) -> bool:
    """Whether every pool of every node's flavor has something in it: an empty one would not be shared."""
    found = Node.objects.filter(name__in=names, present=True, flavor__isnull=False)
    pools = Pool.objects.filter(flavor__in=found.values("flavor"))
    return found.count() == len(names) and pools.count() == pools.filter(use__total__gt=0).count()


def offering_of(row: slices.Row, nodes: dict[str, str]) -> str:
    flavor = Node.objects.select_related("flavor").get(name=nodes[row.nodes]).flavor
    assert flavor is not None
    return f"{flavor.name}/{row.slice}"
