"""Random trees of limits as Kueue objects: accepted by the API server and Kueue's webhooks, stable, and repaired."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import Phase as Phases
from hypothesis import strategies as st
from psycopg import sql

from allocations.cluster.client import connect
from allocations.cluster.errors import ClusterRefused
from allocations.models import AppliedObject
from allocations.reconcile.platform import reconcile_platform
from deploy.local.runner import Local
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Department, Team
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog.models import Pool
from quotas.limits import names
from quotas.limits import services as limits
from quotas.limits.models import Limit, QueuePolicy
from quotas.limits.projection import PoolShape, cluster_queue, cohort
from quotas.limits.tree import Quota
from tests.support.cluster.api_client import JSON_PATCH, ApiClient
from tests.support.cluster.waiting import eventually
from tests.support.clusters import LOCAL

pytestmark = pytest.mark.cluster
UNITS = st.integers(0, 20)
QUOTAS = st.builds(Quota, UNITS, st.none() | UNITS, st.none() | UNITS)
SUPPRESSED_CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@dataclass(frozen=True)
class Shape:
    """``departments``: the parent of each, an earlier one or none; ``teams``: the department of each; quotas and
    weights are assigned to holders and pools in turn.
    """

    departments: list[int]
    teams: list[int]
    quotas: list[Quota]
    weights: list[int]
    edit: int


FLAVORS, RESOURCES = (
    ("a30", "a100", "l40s", "t4"),
    ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"),
)
POOLS = st.lists(
    st.builds(
        lambda flavor, resource: PoolShape(f"{flavor}/{resource}", flavor, {resource: 1}),
        st.sampled_from(FLAVORS),
        st.sampled_from(RESOURCES),
    ),
    min_size=1,
    unique_by=lambda pool: pool.key,
)

SHAPES = st.builds(
    Shape,
    st.lists(st.integers(0, 2), min_size=1, max_size=3),
    st.lists(st.integers(0, 2), min_size=1, max_size=4),
    st.lists(QUOTAS, min_size=5, max_size=5),
    st.lists(st.integers(0, 4000), min_size=2, max_size=2),
    st.integers(0, 99),
)


HISTORY = {
    "team": ("limits_quotachange", "limits_weightchange", "tenants_hierarchychange"),
    "department": ("limits_quotachange", "limits_weightchange", "tenants_hierarchychange"),
    "parent": ("tenants_hierarchychange",),
}


@pytest.fixture
def forget(local: Local) -> Iterator[Callable[[Department | Team], None]]:
    """Delete departments and teams with their limits and, as the owner of the database, their history, which the
    portal never does; Kueue's objects follow.
    """
    created: list[Department | Team] = []
    yield created.append
    with psycopg.connect(local.home.owner_url()) as owner:
        for holder in created:
            for column in ("team",) if isinstance(holder, Team) else ("department", "parent"):
                for table in HISTORY[column]:
                    name, of = sql.Identifier(table), sql.Identifier(f"{column}_id")
                    owner.execute(sql.SQL("DELETE FROM {} WHERE {} = %s").format(name, of), [holder.pk])
    for holder in reversed(created):
        Limit.objects.filter(**limits.holder_fields(holder)).delete()
        QueuePolicy.objects.filter(**limits.holder_fields(holder)).delete()
        holder.delete()
    workqueue.enqueue(targets.platform(LOCAL))


@settings(max_examples=4, deadline=None, phases=[Phases.generate], suppress_health_check=SUPPRESSED_CHECKS)
@given(shape=SHAPES)
def test_whatever_limits_are_set_kueue_takes_them_once_and_gets_them_back_after_an_edit(
    shape: Shape, forget: Callable[[Department | Team], None], admin: ApiClient
) -> None:
    created = grown(shape, forget)
    note(str(created))
    client = connect(LOCAL)
    reconcile_platform(client)
    observed = {name: read(admin, name) for name in created}
    assert all(observed.values())
    own_objects = {name.partition("/")[2] for name in created}
    applied = AppliedObject.objects.filter(target="local/platform", name__in=own_objects).order_by("pk")
    before = list(applied.values_list("name", "resource_version"))
    reconcile_platform(client)
    assert list(applied.values_list("name", "resource_version")) == before
    assert {name for name, _ in before} == own_objects
    edited = sorted(name for name in created if name.startswith("clusterqueue"))[shape.edit % len(shape.teams)]
    patch = [
        {"op": "replace", "path": "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota", "value": "777"},
        {"op": "replace", "path": "/spec/preemption/withinClusterQueue", "value": "LowerPriority"},
    ]
    kind, _, name = edited.partition("/")
    admin.patch(kind, name, body=[patch[shape.edit % 2]], of=JSON_PATCH)
    eventually(lambda: read(admin, edited) == observed[edited])


@settings(max_examples=25, deadline=None, phases=[Phases.generate], suppress_health_check=SUPPRESSED_CHECKS)
@given(pools=POOLS, quotas=st.lists(QUOTAS, min_size=3, max_size=3))
def test_whatever_the_flavors_share_kueue_takes_the_groups(pools: list[PoolShape], quotas: list[Quota]) -> None:
    """By dry run: of a department alone, of one within another, and of a team."""
    client = connect(LOCAL)
    alone = {pool.key: Quota(quotas[0].nominal, None, None) for pool in pools[1:]}
    within = {pool.key: quotas[1] for pool in pools[1:]}
    own = {pool.key: replace(quotas[2], lending=None) for pool in pools[1:]}
    client.apply(cohort("tree-alone", None, pools, alone), dry_run=True)
    client.apply(cohort("tree-within", "dept-tree-alone", pools, within), dry_run=True)
    client.apply(cluster_queue("tree-team", "tree-within", pools, own), dry_run=True)


def test_a_queue_that_kueue_refuses_holds_up_no_other(
    forget: Callable[[Department | Team], None], admin: ApiClient
) -> None:
    tail = uuid4().hex[:6]
    department = tenants.create_department(SYSTEM, f"tree-{tail}", "Tree")
    first, last = (tenants.create_team(SYSTEM, department, f"tree-{tail}-{name}", "Tree") for name in "az")
    for row in (department, first, last):
        forget(row)
    limits.set_policy(SYSTEM, first, {"weight": Decimal(2)})
    QueuePolicy.objects.filter(team=first).update(reclaim="Sometimes")
    limits.set_limit(SYSTEM, last, Pool.objects.get(key="l40s/gpu"), 3)
    with pytest.raises(ClusterRefused, match="Sometimes"):
        reconcile_platform(connect(LOCAL))
    assert read(admin, f"clusterqueue/{names.cluster_queue(last.slug)}")


def read(admin: ApiClient, name: str) -> object:
    return admin.get(*name.split("/"))["spec"]


def grown(shape: Shape, forget: Callable[[Department | Team], None]) -> list[str]:
    """Create departments, teams and limits of that shape; return the names of their Kueue objects."""
    tail = uuid4().hex[:6]
    departments: list[Department] = []
    for number, parent in enumerate(shape.departments):
        row = tenants.create_department(SYSTEM, f"tree-{tail}-{number}", "Tree")
        if number:
            row.parent = departments[parent % number]
            row.save()
        departments.append(row)
        forget(row)
    teams = []
    for number, department in enumerate(shape.teams):
        teams.append(
            tenants.create_team(SYSTEM, departments[department % len(departments)], f"tree-{tail}-t{number}", "Tree")
        )
        forget(teams[-1])
    pools = list(Pool.objects.filter(flavor__accepted=True))
    index = 0
    holders: list[Department | Team] = [*departments, *teams]
    for holder in holders:
        for pool in pools:
            quota = shape.quotas[index % len(shape.quotas)]
            limits.set_limit(SYSTEM, holder, pool, quota.nominal, borrowing=quota.borrowing, lending=quota.lending)
            index += 3
        limits.set_policy(SYSTEM, holder, {"weight": Decimal(shape.weights[index % 2]) / 1000})
    cohorts = [f"cohort/{names.cohort(row.slug)}" for row in departments]
    return [*cohorts, *(f"clusterqueue/{names.cluster_queue(row.slug)}" for row in teams)]
