"""Operators see every model of allocations in the admin, and change none of them there."""

import pytest
from django.urls import reverse

from portal.tenants.actors import SYSTEM
from quotas.catalog.models import Pool
from quotas.limits import services as limits
from tests.support.pages import browser_of, held, requested, text
from tests.support.people import person
from tests.support.quotas import cluster
from tests.support.rows_read import assert_constant

pytestmark = pytest.mark.django_db
MODELS = ("allocation", "transition", "mirrorobject", "watchstate", "appliedobject")


@pytest.fixture
def operator():
    return browser_of(person(platform_role="operator"))


@pytest.fixture
def row(team, project):
    cluster()
    limits.set_limit(SYSTEM, team, Pool.objects.get(key="l40s/gpu"), 4)
    return held(requested(person(team), project, name="training"))


@pytest.mark.parametrize("model", MODELS)
def test_every_model_is_listed_and_searched_and_none_is_added(operator, row, model):
    page = operator.get(reverse(f"admin:allocations_{model}_changelist"), {"q": "x"} if model != "watchstate" else {})
    assert page.status_code == 200
    assert operator.get(reverse(f"admin:allocations_{model}_add")).status_code == 403


def test_an_allocation_is_shown_with_its_timeline_and_cannot_be_saved(operator, row):
    address = reverse("admin:allocations_allocation_change", args=[row.pk])
    page = text(operator.get(address))
    assert "training-lease" in page
    assert 'name="_save"' not in page
    assert operator.post(address, {"name": "other"}).status_code == 403


def test_the_list_of_allocations_needs_the_same_queries_however_long(operator, row, project):
    address = reverse("admin:allocations_allocation_changelist")

    def grow():
        for number in range(49):
            requested(row.requested_by, project, name=f"more-{number}")

    assert_constant(lambda: operator.get(address), grow, at_most=15)
