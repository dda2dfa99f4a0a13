"""The history of quotas, departments and weights: a row for each change, and what applied when."""

from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from portal.core import clock
from portal.tenants import services as tenants
from portal.tenants import structure
from portal.tenants.actors import SYSTEM
from portal.tenants.models import HierarchyChange, Team
from quotas.catalog import versions
from quotas.catalog.models import Offering, Pool
from quotas.limits import history, services
from quotas.limits.models import QuotaChange, WeightChange
from quotas.limits.tree import Quota
from tests.support.capacity import offer
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.quotas import cluster, hour

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def catalog(team: Team) -> None:
    fleet()


def pool(key: str = "l40s/gpu") -> Pool:
    return Pool.objects.get(key=key)


def set_limit(at: float, holder: Any, nominal: int, scope: Any = None, **bounds: Any) -> Any:
    with clock.frozen(hour(at)):
        return services.set_limit(SYSTEM, holder, scope or pool(), nominal, **bounds)


def applied(start: float, end: float, key: str = "l40s/gpu") -> list[tuple[datetime, dict[str, Quota]]]:
    """Return when the quotas of the pool began to apply."""
    return [(one.start, dict(one.quotas.get(key, {}))) for one in history.periods(LOCAL, hour(start), hour(end))]


def test_a_change_of_a_quota_applies_from_then_on(team: Team):
    set_limit(1, team, 4, borrowing=None, lending=2)
    set_limit(3, team, 6)
    assert applied(0, 5) == [
        (hour(0), {}),
        (hour(1), {"team-vision": Quota(4, None, 2)}),
        (hour(3), {"team-vision": Quota(6, 0, None)}),
    ]
    assert applied(3, 4) == [(hour(3), {"team-vision": Quota(6, 0, None)})]


def test_what_does_not_change_is_no_row(team: Team):
    set_limit(1, team, 4)
    set_limit(2, team, 4)
    assert QuotaChange.objects.count() == 1


def test_a_removed_quota_is_none_from_then_on(team: Team):
    limit = set_limit(1, team, 4)
    with clock.frozen(hour(2)):
        services.remove_limit(SYSTEM, limit)
    assert applied(1, 3) == [(hour(1), {"team-vision": Quota(4, 0, None)}), (hour(2), {"team-vision": Quota()})]


def test_a_department_has_quotas_of_its_own(team: Team):
    set_limit(1, team.department, 3)
    assert applied(1, 2) == [(hour(1), {"dept-research": Quota(3, 0, None)})]


def test_limits_that_kueue_does_not_keep_have_no_history(team: Team, member: Any):
    set_limit(1, member.memberships.get(), 3)
    set_limit(1, team, 3, pool().flavor)
    assert not QuotaChange.objects.exists()


def test_quotas_are_those_of_the_cluster(team: Team):
    set_limit(1, team, 4)
    assert history.periods("elsewhere", hour(1), hour(2))[0].quotas == {}


def test_a_team_that_moves_is_in_its_department_of_the_time(team: Team):
    HierarchyChange.objects.all().delete()
    with clock.frozen(hour(0)):
        structure.record_parent(team.department)
        structure.record_parent(team)
    with clock.frozen(hour(2)):
        other = tenants.create_department(SYSTEM, "product", "Product")
        structure.set_parent(SYSTEM, other, team.department)
        structure.move_team(SYSTEM, team, other)
    found = {one.start: dict(one.parents) for one in history.periods(LOCAL, hour(1), hour(3))}
    assert found[hour(1)] == {"dept-research": None, "dept-product": None, "team-vision": "dept-research"}
    assert found[hour(2)] == {"dept-research": None, "dept-product": "dept-research", "team-vision": "dept-product"}


def test_before_its_first_row_a_team_was_where_it_was_first(team: Team):
    [period] = history.periods(LOCAL, hour(1), hour(3))
    assert period.parents == {"dept-research": None, "team-vision": "dept-research"}


def test_weights_are_recorded_when_they_change(team: Team):
    for at, weight, within in ((1, 1, "Never"), (2, 2, "Never"), (3, 2, "LowerPriority"), (4, 1, "Never")):
        with clock.frozen(hour(at)):
            services.set_policy(SYSTEM, team, {"weight": Decimal(weight), "within": within})
    assert list(WeightChange.objects.order_by("at").values_list("at", "weight")) == [
        (hour(2), Decimal(2)),
        (hour(4), Decimal(1)),
    ]


def test_the_pools_of_a_flavors_versions_are_those_of_the_catalogue():
    cluster()
    for offering in Offering.objects.select_related("pool", "flavor"):
        slices = versions.read(LOCAL).at(offering.flavor.name, clock.now())
        assert f"{offering.flavor.name}/{slices.pool(offering.key)}" == offering.pool.key
    of_a100 = versions.read(LOCAL).at("a100", clock.now()).pools
    assert of_a100["mig-1g.10gb"].unit_gpus == Offering.objects.get(key="a100/mig-1g.10gb").gpu_share


def test_a_gpu_that_is_divided_on_demand_is_one_unit_of_its_pool():
    whole = Offering.objects.get(key="h100/whole")
    whole.flavor.partitionable = True
    whole.flavor.save()
    offer("1g.10gb", whole.gpu_share / 7)
    slices = versions.read(LOCAL).at("h100", clock.now())
    assert {name: (pool.resource, pool.unit_gpus) for name, pool in slices.pools.items()} == {
        "slices": ("", Fraction(1))
    }
    assert slices.pool("h100/mig-1g.10gb") == slices.pool("h100/claim") == "slices"
