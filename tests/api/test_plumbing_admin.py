"""Django's admin: every model of the portal is there, its pages load, and what has another page is not written."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from portal.tenants import services
from portal.tenants.actors import SYSTEM
from portal.tenants.models import ApiToken, Department, Membership, Project, Team
from portal.tenants.tokens import find
from tests.support.people import person

OURS = [
    model
    for config in apps.get_app_configs()
    if config.name.split(".")[0] in {"portal", "quotas", "allocations"}
    for model in config.get_models()
    if not model.__name__.startswith("Historical")
]
pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(db):
    user = person(platform_role="operator")
    browser = Client()
    browser.force_login(user)
    return browser


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.label)
def test_every_model_has_its_pages(operator, model):
    assert admin.site.is_registered(model)
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
    assert operator.get(reverse(f"{name}_changelist")).status_code == 200
    assert operator.get(reverse(f"{name}_add")).status_code in {200, 403}


@pytest.mark.parametrize(
    ("model", "page"),
    [
        (Department, "/tenants/departments/research/edit"),
        (Team, "/tenants/teams/vision/edit"),
        (Project, "/projects/vision-train"),
        (Membership, "/teams/vision"),
    ],
)
def test_what_has_a_page_of_its_own_is_shown_here_and_changed_there(operator, team, project, model, page):
    person(team)
    row, name = model.objects.get(), f"admin:tenants_{model._meta.model_name}"
    shown = operator.get(reverse(f"{name}_change", args=[row.pk]))
    assert shown.context["absolute_url"] == page
    assert operator.get(page).status_code == 200
    values = model.objects.filter(pk=row.pk).values().get()
    for action in ("change", "delete"):
        path = reverse(f"{name}_{action}", args=[row.pk])
        assert operator.post(path, {"name": "Other", "role": "lead", "post": "yes"}).status_code == 403
    assert operator.post(reverse(f"{name}_add"), {"slug": "other", "name": "Other"}).status_code == 403
    assert model.objects.values().get() == values


def test_tokens_can_be_revoked_but_neither_made_nor_read(operator, team):
    row, secret = services.issue_token(SYSTEM, person(team), "ci", ["read"], timedelta(days=1))
    page = operator.get(reverse("admin:tenants_apitoken_change", args=[row.pk])).content.decode()
    assert row.digest not in page
    values = {"action": "revoke", "_selected_action": [row.pk]}
    operator.post(reverse("admin:tenants_apitoken_changelist"), values)
    assert ApiToken.objects.get().revoked_at is not None
    assert find(secret) is None


def test_an_auditor_or_lead_has_no_admin(team):
    for user in (person(team, "lead"), person(platform_role="auditor")):
        browser = Client()
        browser.force_login(user)
        assert browser.get(reverse("admin:index")).status_code == 302
