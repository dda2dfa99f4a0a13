"""Slices on several nodes of one NVLink clique: held together, or not at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command

from allocations.requests import details
from deploy.local.fleet import state
from deploy.local.fleet.api import Api
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from quotas.catalog.models import Node, Offering
from quotas.limits import services as limits
from quotas.limits.models import Limit
from tests.support.cluster.allocations import held
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.hardware import Command, Read, are_gone, ready
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster
CLIQUE = "nvidia.com/gpu.clique"
COUNT = 10
"""The GPUs of a node."""


@pytest.fixture(scope="module")
def offering(kubeconfig: Path, fleet: Command, read: Read) -> Iterator[str]:
    """Add H200 nodes, of which each pair is a clique; return the offering of whole GPUs."""
    before = state.read(Api(kubeconfig))[0].extra.get("h200", 0)
    names = {f"h200-{number}" for number in range(before + 2)}
    fleet(f"--extra=h200={before + 2}")
    eventually(lambda: names <= {n["metadata"]["name"] for n in read("nodes")["items"] if ready(n)}, within_s=90)
    nodes = Node.objects.filter(name__in=names, present=True, ready=True, flavor__isnull=False)
    eventually(lambda: nodes.count() == len(names))
    call_command("accept_flavors", "--all", "--share")
    flavor = nodes[0].flavor
    assert flavor is not None
    yield f"{flavor.name}/whole"
    fleet(f"--extra=h200={before}")
    gone = {f"h200-{number}" for number in range(before, before + 2)}
    eventually(lambda: are_gone(gone, read), within_s=90)


@pytest.fixture
def quota(offering: str, vision: Team) -> Iterator[None]:
    pool = Offering.objects.get(key=offering).pool
    before = Limit.objects.get(team=vision, pool=pool).nominal
    limits.set_limit(SYSTEM, vision, pool, COUNT)
    yield
    limits.set_limit(SYSTEM, vision, pool, before)


def test_slices_of_two_nodes_are_held_in_one_clique(
    offering: str, quota: None, project: Project, member: User, admin: ApiClient, read: Read
) -> None:
    row = held(member, project, offering, COUNT, constraints={"spread": True, "same_clique": True})
    nodes = {device.node for device in details.by_id([row])[row.pk].devices}
    labels = {n["metadata"]["name"]: n["metadata"]["labels"] for n in read("nodes")["items"]}
    (clique,) = {labels[node][CLIQUE] for node in nodes}
    assert len(nodes) == 2
    pods = admin.objects("pods", project.namespace)
    assert {pod["spec"]["nodeSelector"][CLIQUE] for pod in pods} == {clique}
