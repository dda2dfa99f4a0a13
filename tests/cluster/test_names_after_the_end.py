"""A name is free again after the end, and what had it before never touches what has it now."""

import pytest

from allocations.cluster.client import connect
from allocations.domain.phases import Phase
from allocations.reconcile.allocation import reconcile_allocation
from portal.tenants.models import Project, User
from tests.support.cluster.allocations import ended, held, intervals, phase
from tests.support.cluster.api_client import ApiClient
from tests.support.clusters import LOCAL

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("offering", ["h100/whole", "l40s/whole"])
def test_a_name_is_held_again_and_its_former_allocation_leaves_it_alone(
    project: Project, member: User, admin: ApiClient, offering: str
) -> None:
    former = ended(member, held(member, project, offering, name="train"))
    row = held(member, project, offering, name="train")
    reconcile_allocation(str(former.pk), connect(LOCAL))
    assert "deletionTimestamp" not in admin.get("workload", "train-lease", project.namespace)["metadata"]
    assert phase(row) == Phase.ACTIVE
    assert (len(intervals(former)), len(intervals(row))) == (1, 1)
    assert intervals(row)[0].end is None
    assert intervals(former)[0].end is not None
