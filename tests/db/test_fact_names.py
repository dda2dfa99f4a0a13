"""The migration that renames a fact of mirrored Workloads."""

from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection

from allocations.models import MirrorObject
from portal.core import clock
from tests.support.clusters import LOCAL

pytestmark = pytest.mark.django_db

GPU = "nvidia.com/gpu"
MIGRATION = import_module("allocations.migrations.0011_gpu_requests_fact").Migration


@pytest.mark.parametrize(
    "facts",
    [{"asks": {GPU: 2}, "priority": 7}, {"cluster_queue": "team-vision"}],
    ids=["a job from before the migration", "a lease, which has no such fact"],
)
def test_rows_from_before_the_migration_have_the_fact_by_its_new_name_and_back(facts: dict[str, object]) -> None:
    row = MirrorObject.objects.create(
        cluster_id=LOCAL, kind="Workload", name="job", uid="u", resource_version=1, facts=facts, seen_at=clock.now()
    )
    (operation,) = MIGRATION.operations
    operation.code(apps, connection.schema_editor())
    row.refresh_from_db()
    assert row.facts == {("gpu_requests" if name == "asks" else name): value for name, value in facts.items()}
    operation.reverse_code(apps, connection.schema_editor())
    row.refresh_from_db()
    assert row.facts == facts
