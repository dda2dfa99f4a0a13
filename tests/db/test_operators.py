"""The platform role alone decides who is an operator, and so who may open Django's admin."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command

from portal.core.models import AuditEntry
from portal.tenants import services
from portal.tenants.actors import SYSTEM
from portal.tenants.models import User
from tests.support.pages import browser_of
from tests.support.people import client, person

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("role", "is_operator"), [("operator", True), ("auditor", False), ("", False)])
def test_djangos_flags_follow_the_platform_role(role, is_operator):
    user = person(platform_role=role)
    assert (user.is_staff, user.is_superuser) == (is_operator, is_operator)
    assert (user.has_perm("tenants.add_user"), user.has_module_perms("tenants")) == (is_operator, is_operator)


def test_a_session_of_a_demoted_operator_loses_the_admin_at_once():
    user = person(platform_role="operator")
    browser = browser_of(user)
    assert browser.get("/admin/").status_code == 200
    User.objects.filter(pk=user.pk).update(platform_role="auditor")
    assert browser.get("/admin/").status_code == 302
    assert browser.get("/tenants/teams/new").status_code == 403


def test_a_token_of_a_demoted_operator_does_only_what_the_person_still_may(team):
    user, _ = (person(platform_role="operator") for _ in range(2))
    api = client(user)
    assert api.get("/api/v1/teams/vision").status_code == 200
    user.platform_role = ""
    services.save_person(SYSTEM, user, ["platform_role"])
    assert api.get("/api/v1/teams/vision").status_code == 404
    body = {"slug": "cells", "name": "Cells", "department": "research"}
    assert api.post("/api/v1/teams", body, format="json").status_code == 403


def test_an_inactive_operator_may_do_nothing_in_the_admin():
    user = person(platform_role="operator")
    user.is_active = False
    assert not user.has_perm("tenants.add_user")
    assert not user.has_module_perms("tenants")


def test_an_operator_demotes_another_in_the_admin_and_the_log_has_it():
    browser, other = browser_of(person(platform_role="operator")), person(platform_role="operator")
    address = f"/admin/tenants/user/{other.pk}/change/"
    form = browser.get(address).context["adminform"].form
    assert set(form.fields) == {
        "username",
        "password",
        "first_name",
        "last_name",
        "email",
        "is_active",
        "platform_role",
    }
    values = {"username": other.username, "is_active": "on", "platform_role": "auditor"}
    assert browser.post(address, values).status_code == 302
    other.refresh_from_db()
    assert (other.platform_role, other.is_staff, other.is_superuser) == ("auditor", False, False)
    entry = AuditEntry.objects.filter(action="user.save").latest("pk")
    assert (entry.before, entry.after) == ({"platform_role": "operator"}, {"platform_role": "auditor"})


def test_createsuperuser_creates_an_operator_and_the_log_has_it(monkeypatch):
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "a long password of hers")
    call_command("createsuperuser", interactive=False, username="olga", email="olga@example.org")
    user = User.objects.get(username="olga")
    assert (user.platform_role, user.check_password("a long password of hers")) == ("operator", True)
    assert AuditEntry.objects.filter(action="user.create", target="olga").exists()


def test_djangos_groups_and_permissions_are_nowhere():
    assert not admin.site.is_registered(Group)
    assert not admin.site.is_registered(Permission)
    assert {field.name for field in User._meta.get_fields()}.isdisjoint({"groups", "user_permissions"})


def test_no_admin_form_writes_a_many_to_many_field_unseen_by_the_audit_log():
    """Such a field is saved after `save_model`, which writes the entry: an admin with one has to audit it itself."""
    assert {model._meta.label: model._meta.many_to_many for model in admin.site._registry} == {
        model._meta.label: () for model in admin.site._registry
    }
