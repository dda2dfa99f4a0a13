"""Limits that the portal counts: granted first come, first served, released once, never exceeded."""

from fractions import Fraction
from threading import Barrier, Event, Thread
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction

from allocations.capacity.recount import recount_limits_on
from allocations.domain.allocation_spec import AllocationRequest
from allocations.limits import services as limit_services
from allocations.projects import organization
from allocations.requests import services as requests
from portal.core.errors import Refused
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Department, Team
from quotas.catalog.models import Offering
from quotas.limits import counting, services
from quotas.limits.models import FRACTION_BASE, Limit, LimitUse
from quotas.limits.tree import Quota
from tests.support.cluster.waiting import eventually
from tests.support.database_locks import waits_for_a_lock
from tests.support.pages import requested
from tests.support.people import person
from tests.support.quotas import cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def whole(db: None) -> Offering:
    cluster()
    return Offering.objects.select_related("pool", "flavor").get(key="l40s/whole")


@pytest.fixture
def limit(project, whole) -> Limit:
    return services.set_limit(SYSTEM, project, whole.flavor, 3)


def used(limit: Limit) -> Fraction:
    limit.refresh_from_db()
    return limit.units_used


def test_what_is_taken_counts_until_it_is_given_back(limit, whole):
    allocation = uuid4()
    counting.grant(allocation, [limit], counting.demand(whole, 2))
    assert used(limit) == 2
    counting.release(allocation)
    counting.release(allocation)
    assert used(limit) == 0
    assert list(LimitUse.objects.values_list("granted_seq", "released_seq")) == [(1, 2)]


def test_one_too_many_counts_against_nothing(limit, whole, team):
    mine = services.set_limit(SYSTEM, team, whole, 9)
    with pytest.raises(counting.LimitReached) as caught:
        counting.grant(uuid4(), [mine, limit], counting.demand(whole, 4))
    assert caught.value.limit == limit
    assert used(limit) == used(mine) == 0
    assert not LimitUse.objects.exists()


def test_a_seventh_of_a_gpu_is_counted_exactly(project):
    cluster()
    slice_ = Offering.objects.select_related("pool", "flavor").get(key="a100/mig-1g.10gb")
    limit = services.set_limit(SYSTEM, project, None, 1)
    for _ in range(7):
        counting.grant(uuid4(), [limit], counting.demand(slice_, 1))
    assert used(limit) == 7 * slice_.gpu_share <= 1
    with pytest.raises(counting.LimitReached):
        counting.grant(uuid4(), [limit], counting.demand(slice_, 1))


def test_a_limit_below_what_is_in_use_takes_nothing_and_grants_nothing(limit, whole, project):
    first, second = uuid4(), uuid4()
    counting.grant(first, [limit], counting.demand(whole, 2))
    counting.grant(second, [limit], counting.demand(whole, 1))
    services.set_limit(SYSTEM, project, whole.flavor, 1)
    assert used(limit) == 3
    with pytest.raises(counting.LimitReached):
        counting.grant(uuid4(), [limit], counting.demand(whole, 1))
    counting.release(first)
    limit.refresh_from_db()
    assert (limit.units_used, limit.allowance) == (1, FRACTION_BASE)


def test_a_new_limit_begins_with_what_is_held(project, whole):
    held = [(uuid4(), counting.demand(whole, 2)), (uuid4(), counting.demand(whole, 2))]
    limit = services.set_limit(SYSTEM, project, whole, 3, uses=lambda: held)
    assert used(limit) == 4
    assert limit.allowance == 4 * FRACTION_BASE


def test_only_limits_of_the_person_the_project_and_what_is_above_bind(team, other_team, project, whole):
    ada, bob = person(team), person(team)
    mine = services.set_limit(SYSTEM, team.memberships.get(user=ada), whole, 1)
    of_project = services.set_limit(SYSTEM, project, None, 5)
    of_team = services.set_limit(SYSTEM, team, whole.flavor, 6)
    services.set_limit(SYSTEM, team.memberships.get(user=bob), whole, 1)
    services.set_limit(SYSTEM, other_team, whole.flavor, 6)
    services.set_limit(SYSTEM, team, whole.pool, 6)
    above = services.set_limit(SYSTEM, team.department, None, 9)
    found = counting.applicable_limits([team.pk], {team.department_id}, ada, project)
    assert list(found) == sorted([mine, of_project, of_team, above], key=lambda one: one.pk)


@pytest.mark.django_db(transaction=True)
def test_of_many_who_ask_at_once_as_many_get_as_the_limit_has(limit, whole):
    asking, got = Barrier(8), []

    def ask() -> None:
        asking.wait()
        try:
            for _ in range(5):
                allocation: UUID = uuid4()
                try:
                    counting.grant(allocation, [limit], counting.demand(whole, 1))
                    got.append(allocation)
                except counting.LimitReached:
                    pass
        finally:
            connection.close()

    threads = [Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 3
    assert used(limit) == 3


@pytest.mark.django_db(transaction=True)
def test_a_limit_set_while_someone_asks_counts_what_is_asked(team, project, whole):
    lead, made = person(team, "lead"), []
    services.set_limit(SYSTEM, team, whole.pool, 4)

    def set_it() -> None:
        made.append(limit_services.set_limit(lead, project, None, Quota(9)))
        connection.close()

    setting = Thread(target=set_it)
    with transaction.atomic():
        requested(person(team), project, count=2)
        setting.start()
        eventually(waits_for_a_lock)
    setting.join()
    assert used(made[0]) == 2


@pytest.mark.django_db(transaction=True)
def test_a_request_that_loses_the_rest_of_a_limit_to_another_project_is_told_what_is_left(team, project, whole):
    member, limit = person(team), services.set_limit(SYSTEM, team, whole.flavor, 3)
    services.set_limit(SYSTEM, team, whole.pool, 4)
    granted = Event()

    def grant_elsewhere() -> None:
        with transaction.atomic():
            counting.grant(uuid4(), [limit], counting.demand(whole, 2))
            granted.set()
            eventually(lambda: waits_for_a_lock("transactionid"))
        connection.close()

    granting = Thread(target=grant_elsewhere)
    granting.start()
    assert granted.wait(10)
    with pytest.raises(Refused) as refused:
        requests.request(member, AllocationRequest(project.slug, whole.key, count=2))
    granting.join()
    assert [(one.limit, one.used, one.requested) for one in refused.value.violations] == [(3, 2, 2)]


def test_what_is_there_without_having_been_asked_for_counts_too(team, project, whole):
    limit = services.set_limit(SYSTEM, project, None, 9)
    services.set_limit(SYSTEM, team, whole.pool, 4)
    row = requested(person(team), project, count=2)
    counting.release(row.pk)  # as a database of before it was asked for
    recount_limits_on(row)
    assert used(limit) == 2


def test_a_team_that_moves_counts_where_it_is(team, project, whole):
    limits = {slug: services.set_limit(SYSTEM, d, None, 9) for slug, d in departments(team).items()}
    services.set_limit(SYSTEM, team, whole.pool, 4)
    requested(person(team), project, count=2)
    assert {slug: used(limit) for slug, limit in limits.items()} == {"research": 2, "product": 0}
    product = Department.objects.get(slug="product")
    organization.change_team(SYSTEM, team, {"department": product})
    assert {slug: used(limit) for slug, limit in limits.items()} == {"research": 0, "product": 2}


def departments(team: Team) -> dict[str, Department]:
    return {"research": team.department, "product": tenants.create_department(SYSTEM, "product", "Product")}
