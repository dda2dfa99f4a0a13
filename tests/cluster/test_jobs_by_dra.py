"""A tenant's queued Job on GPUs by DRA, requested as nvidia.com/gpu: admitted, allocated devices, charged for
each.
"""

import pytest

from allocations.queues.jobs import State
from portal.tenants.models import Project, User
from quotas.catalog.models import Device, Pool
from quotas.metering.models import UsageInterval
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.hardware import Read, devices
from tests.support.cluster.jobs import Submit, assert_charged_once, become
from tests.support.cluster.waiting import eventually
from tests.support.people import client

pytestmark = pytest.mark.cluster


def test_a_job_by_dra_is_admitted_given_a_device_and_charged_for_it(
    every_kind: dict[str, str],
    submit: Submit,
    project: Project,
    member: User,
    admin: ApiClient,
    read: Read,
) -> None:
    node = every_kind["a10-dra"]
    assert Pool.objects.get(key="a10/gpu").resources == {"nvidia.com/gpu": 1}
    a10 = {"nvidia.com/gpu.product": "NVIDIA-A10"}
    # The policy on Jobs learns of a flavor a moment after it is accepted.
    uid = eventually(lambda: submit("by-dra", pods=2, nodeSelector=a10), AssertionError)
    job = become(project, uid, State.RUNNING)
    assert (job.offering, job.gpus) == ("a10/whole", 2)
    rows = eventually(lambda: both(uid))
    claims = read("resourceclaims", "-n", project.namespace)["items"]
    slots = {f"local/{pool}/{device}" for claim in claims for pool, device in devices(claim)}
    assert {row.slot for row in rows or ()} == slots
    for row in rows or ():
        assert row.device_uuid == Device.objects.get(node__name=node, name=row.device).uuid
        assert (row.node, row.offering, row.count, row.project) == (node, "a10/whole", 1, project.slug)
    eventually(lambda: Pool.objects.get(key="a10/gpu").use.foreign == 0)

    admin.delete("job", "by-dra", project.namespace)
    eventually(lambda: not UsageInterval.objects.filter(holder_id=uid, end=None).exists())
    assert not UsageInterval.objects.filter(holder_id=uid, estimated_end=True).exists()
    eventually(lambda: client(member).get(f"/api/v1/jobs/{uid}").status_code == 404)
    assert_charged_once(uid)


def both(uid: str) -> list[UsageInterval] | None:
    """Return the two devices in use, once nothing reserved is left over."""
    rows = list(UsageInterval.objects.filter(holder_id=uid, end=None))
    return rows if len(rows) == 2 and not any(row.unused for row in rows) else None
