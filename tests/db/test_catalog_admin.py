"""Django's admin of catalog, limits, ledger and prices: it shows all, and writes nothing."""

from datetime import date

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from demo import prices
from portal.tenants.actors import SYSTEM
from portal.tenants.models import User
from quotas.catalog.models import Flavor, Node
from quotas.costs import bills, capacity_services
from quotas.costs.capacity_services import CostSubject
from quotas.costs.models import Bill, NodeCost, NodeTerm, Price, SharedCost
from quotas.costs.node_terms import Term
from quotas.limits.models import Limit
from quotas.limits.seeds import seed_half_quotas
from tests.support.quotas import cluster, hour, used

pytestmark = pytest.mark.django_db
APPS = ("clusters", "catalog", "limits", "metering", "costs")
MODELS = [model for model in admin.site._registry if model._meta.app_label in APPS]


@pytest.fixture
def operator(db: None, client: Client) -> Client:
    client.force_login(User.objects.create(username="op", platform_role="operator"))
    return client


@pytest.fixture
def rows(team) -> None:
    cluster()
    seed_half_quotas()
    prices.price()
    used(hour(0), hour(1))


def url(model, page: str, *args: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def test_every_model_has_its_page():
    assert {model.__name__ for model in MODELS} == {
        *("Cluster", "Flavor", "FlavorVersion", "Pool", "PoolUse", "Offering", "Preset", "Node", "Device"),
        *("Limit", "LimitUse", "QueuePolicy", "QuotaChange", "WeightChange", "Price"),
        *("UsageInterval", "CapacityInterval", "ForeignUse", "HoldUse", "BalanceProof"),
        *("Correction", "RecorderOutage", "ClockSkew"),
        *("NodeCost", "NodeTerm", "NodeInterval", "CapacityCostHour", "CapacityCostDay"),
        *("CapacityCostMonth", "Bill", "SharedCost"),
        "SavedView",
        *("AccountHour", "HourTotal", "DayTotal", "MonthTotal", "RolledUpHour", "DirtyHour"),
        *("OwnedIdleHour", "OwnedIdleDay", "OwnedIdleMonth"),
    }


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_rows_are_listed_shown_and_never_deleted(operator, rows, model):
    assert operator.get(url(model, "changelist")).status_code == 200
    row = model.objects.first()
    if row:
        assert operator.get(url(model, "change", row.pk)).status_code == 200
        assert operator.post(url(model, "delete", row.pk), {"post": "yes"}).status_code == 403
        assert operator.post(url(model, "change", row.pk), {}).status_code == 403
    assert operator.get(url(model, "add")).status_code == 403


@pytest.mark.parametrize(("model", "page"), [(Limit, "/limits"), (Price, "/prices"), (Flavor, "/flavors/a100")])
def test_what_has_a_page_of_its_own_leads_there(operator, rows, model, page):
    shown = operator.get(url(model, "change", model.objects.first().pk))
    assert shown.context["absolute_url"] == page
    assert f'href="{page}"' in shown.content.decode()


def test_what_was_charged_or_computed_by_is_never_changed_or_deleted_in_the_admin(operator, rows):
    flavor, node = Flavor.objects.get(name="l40s"), Node.objects.get(name="l40s-0")
    operator_of_services = User.objects.get(username="op")
    capacity_services.set_node_cost(SYSTEM, CostSubject(node=node), "1", NodeCost.Per.GPU)
    capacity_services.set_node_term(SYSTEM, node.cluster_id, node.name, Term.SPOT)
    bills.enter_bill(operator_of_services, flavor.cluster_id, date(2026, 1, 1), "1")
    bills.set_shared_cost(operator_of_services, "network", date(2026, 1, 1), "1", "weighted")
    for model in (Price, NodeCost, NodeTerm, Bill, SharedCost):
        before = list(model.objects.values())
        assert before
        pk = before[0]["id"]
        for page in ("change", "delete"):
            assert operator.post(url(model, page, pk), {"post": "yes", "currency": "USD"}).status_code == 403
        action = {"action": "delete_selected", "_selected_action": [pk], "post": "yes"}
        operator.post(url(model, "changelist"), action)
        assert list(model.objects.values()) == before
