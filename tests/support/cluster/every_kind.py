"""A fixture for all tests that ask for it: a fleet with a node of every kind, all flavors accepted and quotas set.

Those tests run last, since others count the devices of the fleet as it is without these nodes.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command

from quotas.catalog.models import Node, Offering
from tests.support.cluster import slices
from tests.support.cluster.hardware import Command, Read, adding_nodes
from tests.support.cluster.waiting import eventually


@pytest.fixture(scope="session")
def every_kind(kubeconfig: Path, fleet: Command, read: Read) -> Iterator[dict[str, str]]:
    """Add a node of each kind, accept its flavor, and give each team half of it: {kind of node: name}."""
    with adding_nodes(kubeconfig, fleet, read) as switch:
        names = {"h100": "h100-0", "a100": "a100-0", "l40s": "l40s-0", "t4": "t4-0", **switch(*slices.SWITCHED_ON)}
        eventually(lambda: are_counted(names), AssertionError, within_s=90)
        call_command("accept_flavors", "--all", "--share")
        yield names


def are_counted(nodes: dict[str, str]) -> bool:
    missing = [row.key for row in slices.ROWS if not is_counted(row, nodes)]
    assert not missing, missing
    return True


def is_counted(row: slices.Row, nodes: dict[str, str]) -> bool:
    """Return whether the row's pool has units: seeding would skip an empty one."""
    if not Node.objects.filter(name=nodes[row.nodes], present=True, flavor__isnull=False).exists():
        return False
    return Offering.objects.filter(key=offering_of(row, nodes), pool__use__total__gt=0).exists()


def offering_of(row: slices.Row, nodes: dict[str, str]) -> str:
    flavor = Node.objects.select_related("flavor").get(name=nodes[row.nodes]).flavor
    assert flavor is not None
    return f"{flavor.name}/{row.slice}"
