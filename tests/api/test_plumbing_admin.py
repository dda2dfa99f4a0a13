"""Django's admin: every model of the portal is there, its pages load, and its writes go through the services."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from portal.core.models import WorkItem
from portal.tenants import services
from portal.tenants.models import ApiToken, Membership, Project
from portal.tenants.tokens import find
from quotas.limits.models import Limit
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


def test_a_project_made_here_is_marked_due_and_keeps_its_slug(operator, team):
    values = {
        "slug": "vision-train",
        "name": "Vision training",
        "team": team.pk,
        "namespace": "vision-train",
        "pod_security": "restricted",
        "egress": "none",
        "exposure": "cluster",
    }
    assert operator.post(reverse("admin:tenants_project_add"), values).status_code == 302
    project = Project.objects.get()
    assert WorkItem.objects.filter(target="local/project:vision-train").exists()
    change = reverse("admin:tenants_project_change", args=[project.pk])
    operator.post(change, values | {"slug": "other", "egress": "cluster"})
    project.refresh_from_db()
    assert (project.slug, project.egress) == ("vision-train", "cluster")
    assert operator.post(reverse("admin:tenants_project_delete", args=[project.pk])).status_code == 403


def test_a_department_is_renamed_here_and_moved_where_limits_are_counted_anew(operator, team):
    change = reverse("admin:tenants_department_change", args=[team.department.pk])
    above = services.create_department("science", "Science")
    operator.post(change, {"name": "Labs", "parent": above.pk})
    team.department.refresh_from_db()
    assert (team.department.name, team.department.parent) == ("Labs", None)


def test_a_team_is_made_and_renamed_here_and_moved_where_limits_are_counted_anew(operator, team):
    above = services.create_department("science", "Science")
    WorkItem.objects.all().delete()
    values = {"slug": "cells", "name": "Cells", "department": above.pk}
    assert operator.post(reverse("admin:tenants_team_add"), values).status_code == 302
    change = reverse("admin:tenants_team_change", args=[team.pk])
    operator.post(change, {"name": "Sight", "department": above.pk})
    team.refresh_from_db()
    assert (team.name, team.department.slug) == ("Sight", "research")
    assert WorkItem.objects.filter(target="local/platform").exists()


def test_a_membership_is_given_changed_and_taken(operator, team, project):
    user = person()
    WorkItem.objects.all().delete()
    values = {"user": user.pk, "team": team.pk, "role": "member"}
    operator.post(reverse("admin:tenants_membership_add"), values)
    membership = Membership.objects.get(user=user)
    operator.post(reverse("admin:tenants_membership_change", args=[membership.pk]), {"role": "lead"})
    assert Membership.objects.get(user=user).role == "lead"
    operator.post(reverse("admin:tenants_membership_delete", args=[membership.pk]), {"post": "yes"})
    assert not Membership.objects.filter(user=user).exists()
    assert set(WorkItem.objects.values_list("target", flat=True)) == {"local/platform", "local/project:vision-train"}


def test_tokens_can_be_revoked_but_neither_made_nor_read(operator, team):
    row, secret = services.issue_token(person(team), "ci", ["read"], timedelta(days=1))
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


def test_a_limit_that_the_portal_counts_is_not_added_here(operator, team):
    """Its count would start at zero, whatever is held."""
    values = {"team": team.pk, "nominal": 4, "borrowing": 0}
    page = operator.post(reverse("admin:limits_limit_add"), values)
    assert page.status_code == 200
    assert "pool" in page.context["adminform"].form.errors
    assert not Limit.objects.filter(pool=None).exists()
