"""Every field of a request is stored in the row, shown by REST and the audit log, and restored from the lease."""

from datetime import timedelta

import pytest

from allocations.cluster import names
from allocations.domain.allocation_spec import AllocationSpec
from allocations.domain.documents import fields_of
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, MirrorObject
from allocations.reconcile import recovery
from portal.core import clock
from portal.core.models import AuditEntry
from tests.support.claim_rows import h100_node
from tests.support.clusters import LOCAL
from tests.support.fleet import allocate
from tests.support.observed import quotas_listed
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
TEXT = {each.name: f"its {each.name}" for each in fields_of(AllocationSpec) if each.info.label}
SAID = {
    **TEXT,
    "name": "train",
    "priority": "batch",
    "requeue": False,
    "labels": {"app": "train", "example.com/stage": ""},
    "constraints": {"same_pcie_root": True},
    "sharing": {"strategy": "TimeSlicing", "interval": "Long"},
}


@pytest.fixture
def member(team):
    h100_node(team)
    return person(team)


@pytest.fixture
def row(member, project) -> Allocation:
    return allocate(member, project, "h100/whole", 2, **SAID, starts_at=clock.now() + timedelta(hours=1))


def test_an_allocation_made_again_from_its_lease_is_asked_to_be_the_same(row, project):
    spec = spec_of_row.spec(row)
    left_out = [each.name for each in fields_of(AllocationSpec) if getattr(spec, each.name) == each.default]
    assert left_out == ["mode", "ends_at", "claim"]  # one has hours or a date
    MirrorObject.objects.create(
        cluster_id=LOCAL,
        kind="Workload",
        namespace=project.namespace,
        name=names.lease(row.name),
        uid="u",
        resource_version=1,
        allocation=row.name,
        facts={"record": spec_of_row.record(row, spec).to_text()},
        seen_at=clock.now(),
    )
    quotas_listed(1)
    Allocation.objects.all().delete()
    recovery.adopt(LOCAL, project.namespace)
    again = spec_of_row.rows().get(pk=row.pk)
    assert (spec_of_row.spec(again), again.created_at, again.recovered) == (spec, row.created_at, True)


def test_the_answer_of_rest_has_every_field(row, member):
    body = client(member).get(f"/api/v1/allocations/{row.pk}").json()
    assert {each.name for each in fields_of(AllocationSpec)} <= body.keys()
    assert {name: body[name] for name in TEXT} == TEXT
    assert body["sharing"]["interval"] == "Long"
    assert body["labels"] == SAID["labels"]
    assert [name for name, is_set in body["constraints"].items() if is_set] == ["same_pcie_root"]


def test_the_audit_log_has_what_was_asked_for(row):
    after = AuditEntry.objects.get(action="allocation.request").after
    assert after is not None
    assert {name: after[name] for name in after if name in SAID} == {
        name: value for name, value in SAID.items() if name != "name"
    }
