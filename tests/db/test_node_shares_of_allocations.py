"""The CPU, memory and pods of a node that go with an allocation."""

import pytest

from allocations.capacity.node_shares import node_share
from allocations.domain.allocation_spec import AllocationRequest
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from allocations.requests import services
from quotas.catalog.models import Flavor
from quotas.catalog.node_shares import NodeShare
from tests.support.claim_rows import h100_node
from tests.support.people import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def member(team):
    h100_node(team)
    Flavor.objects.update(node_cpu_millicores=23_000, node_memory_mib=240_000, node_pods=28)
    return person(team)


def requested(member, **fields) -> Allocation:
    row = services.request(member, AllocationRequest.from_json({"project": "vision-train", **fields}))
    return spec_of_row.rows().get(pk=row.pk)


def test_each_slice_of_an_allocation_has_its_share(member, project):
    row = requested(member, offering="h100/mig-1g.10gb", count=3)
    assert row.offering.node_share == NodeShare(2_875, 30_000, 2)
    assert node_share(row) == NodeShare(8_625, 90_000, 6)


def test_a_claim_has_the_share_of_what_it_takes(member, project):
    row = requested(member, offering="h100/claim", claim={"requests": [{"device": "mig", "profile": "3g.40gb"}]})
    assert node_share(row) == NodeShare(11_500, 120_000, 13)


def test_a_claim_with_alternatives_has_the_share_of_the_smallest(member, project):
    either = {"alternatives": [{"name": "card"}, {"name": "part", "device": "mig", "profile": "1g.10gb"}]}
    assert node_share(requested(member, offering="h100/claim", claim={"requests": [either]})).memory_mib == 30_000


def test_a_claim_of_the_release_before_has_the_share_of_its_leases_units(member, project):
    row = requested(member, offering="h100/claim", claim={"requests": [{"count": 2}]})
    kept = row.claim or {}
    built = {name: value for name, value in kept["built"].items() if name != "card_part"}
    row.claim = {**kept, "built": {**built, "units": {"gpu-portal.io/memory-slices": 16}}}
    assert node_share(row) == NodeShare(46_000, 480_000, 32)


def test_a_claim_for_several_gpus_has_the_share_of_each(member, project):
    row = requested(member, offering="h100/claim", claim={"requests": [{"count": 2}]})
    assert node_share(row) == NodeShare(46_000, 480_000, 32)


def test_it_needs_no_query(member, project, django_assert_num_queries):
    row = requested(member, offering="h100/claim", claim={"requests": [{"count": 2}]})
    with django_assert_num_queries(0):
        node_share(row)


def test_nothing_is_told_where_no_node_has_told(member, project):
    Flavor.objects.update(node_cpu_millicores=0, node_memory_mib=0, node_pods=0)
    assert not node_share(requested(member, offering="h100/whole", count=1))
