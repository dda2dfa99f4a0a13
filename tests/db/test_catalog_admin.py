"""Django's admin of catalog, limits, ledger and prices: it shows all, and writes what has no page of its own."""

from datetime import date

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from demo import prices
from portal.core.models import AuditEntry
from portal.tenants.actors import SYSTEM
from portal.tenants.models import User
from quotas.catalog.models import Flavor, Node, Offering, Preset
from quotas.costs import bills, capacity_services
from quotas.costs.capacity_services import CostSubject
from quotas.costs.models import Bill, NodeCost, NodeTerm, Price, SharedCost
from quotas.costs.node_terms import Term
from quotas.limits.models import Limit, QueuePolicy
from quotas.limits.seeds import seed_half_quotas
from tests.support.quotas import cluster, hour, used

pytestmark = pytest.mark.django_db
APPS = ("clusters", "catalog", "limits", "metering", "costs")
MODELS = [model for model in admin.site._registry if model._meta.app_label in APPS]
WRITABLE = {"Flavor", "Offering", "Preset", "QueuePolicy"}
ADDABLE = {"Preset", "QueuePolicy"}


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
        if model.__name__ not in WRITABLE:
            assert operator.post(url(model, "change", row.pk), {}).status_code == 403
    assert operator.get(url(model, "add")).status_code == (200 if model.__name__ in ADDABLE else 403)


@pytest.mark.parametrize(("model", "page"), [(Limit, "/limits"), (Price, "/prices")])
def test_what_has_a_page_of_its_own_leads_there(operator, rows, model, page):
    shown = operator.get(url(model, "change", model.objects.first().pk))
    assert shown.context["absolute_url"] == page
    assert f'href="{page}"' in shown.content.decode()


def test_a_preset_is_added_and_changed_through_the_service(operator, rows):
    offering = Offering.objects.get(key="l40s/whole")
    values = {"name": "Notebook", "offering": offering.pk, "count": "1", "hours": "8", "position": "0"}
    assert operator.post(url(Preset, "add"), values).status_code == 302
    preset = Preset.objects.get()
    assert operator.post(url(Preset, "change", preset.pk), values | {"count": "2"}).status_code == 302
    preset.refresh_from_db()
    assert preset.count == 2
    entry = AuditEntry.objects.filter(action="preset.set").latest("pk")
    assert entry.actor == "op"
    assert entry.before is not None
    assert entry.after is not None
    assert (entry.before["count"], entry.after["count"]) == (1, 2)
    assert operator.post(url(Preset, "change", preset.pk), values | {"count": "0"}).status_code == 200


def test_a_policy_is_added_and_changed_through_the_service(operator, team):
    values = {"team": team.pk, "weight": "2", "reclaim": "Any", "within": "Never"}
    assert operator.post(url(QueuePolicy, "add"), values).status_code == 302
    policy = QueuePolicy.objects.get()
    assert operator.post(url(QueuePolicy, "change", policy.pk), values | {"weight": "1"}).status_code == 302
    policy.refresh_from_db()
    assert policy.weight == 1


def test_a_policy_that_is_the_default_is_answered_in_the_form(operator, team):
    values = {"team": team.pk, "weight": "1", "reclaim": "Any", "within": "Never"}
    answer = operator.post(url(QueuePolicy, "add"), values)
    assert answer.status_code == 200
    assert "These are the defaults, which apply without a policy." in answer.content.decode()
    assert not QueuePolicy.objects.exists()


def test_a_policy_that_a_department_cannot_have_is_answered_in_the_form(operator, team):
    values = {"department": team.department.pk, "weight": "1", "reclaim": "Never", "within": "Never"}
    answer = operator.post(url(QueuePolicy, "add"), values)
    assert answer.status_code == 200
    assert "A department has a weight alone" in answer.content.decode()


def test_what_people_decide_about_flavors_and_offerings(operator, rows):
    flavor, offering = Flavor.objects.get(name="l40s"), Offering.objects.get(key="a100/mig-1g.10gb")
    operator.post(url(Flavor, "change", flavor.pk), {"hidden": "on", "start_deadline_s": "60", "name": "x"})
    operator.post(url(Offering, "change", offering.pk), {"hidden": "on"})
    flavor.refresh_from_db()
    offering.refresh_from_db()
    assert (flavor.name, flavor.hidden, flavor.start_deadline_s, offering.hidden) == ("l40s", True, 60, True)


@pytest.fixture
def known(rows) -> Flavor:
    """Create a flavor whose nodes have reported their capacity."""
    Flavor.objects.update(node_cpu_millicores=15_190, node_memory_mib=126_443, node_pods=57)
    return Flavor.objects.get(name="l40s")


def test_cpu_and_memory_of_a_gpu_are_written_as_kubernetes_does(operator, known):
    operator.post(url(Flavor, "change", known.pk), {"cpu_millicores_per_gpu": "12500m", "memory_mib_per_gpu": "96Gi"})
    known.refresh_from_db()
    assert (known.cpu_millicores_per_gpu, known.memory_mib_per_gpu) == (12_500, 98_304)
    page = operator.get(url(Flavor, "change", known.pk)).content.decode()
    assert 'value="12500m"' in page
    assert 'value="96Gi"' in page
    operator.post(url(Flavor, "change", known.pk), {"cpu_millicores_per_gpu": "", "memory_mib_per_gpu": "96Gi"})
    known.refresh_from_db()
    assert (known.cpu_millicores_per_gpu, known.memory_mib_per_gpu) == (None, 98_304)


@pytest.mark.parametrize(
    ("amount", "words"), [("16", "has 15190m of CPU for each"), ("0", "Give 10m"), ("many", "is no amount such as")]
)
def test_cpu_that_no_node_has_is_answered_beside_its_field(operator, known, amount, words):
    answer = operator.post(url(Flavor, "change", known.pk), {"cpu_millicores_per_gpu": amount})
    assert answer.status_code == 200
    assert words in answer.content.decode()
    known.refresh_from_db()
    assert known.cpu_millicores_per_gpu is None


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
