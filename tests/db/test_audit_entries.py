"""Audit entries of people's actions: each with team, project, before and after."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client

from allocations.requests import services
from portal.audit import context
from portal.audit.entries import audit
from portal.core.errors import Refused
from portal.core.models import AuditEntry
from portal.tenants import members, structure
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM, System
from portal.tenants.models import Membership
from quotas.catalog import services as catalog
from quotas.catalog.models import Flavor, Pool
from quotas.costs import services as prices
from quotas.limits import services as limits
from tests.support.fleet import allocate, fleet
from tests.support.pages import browser_of
from tests.support.people import person

pytestmark = pytest.mark.django_db
SECRET = "a long enough secret"


@pytest.fixture
def member(team):
    fleet(team)
    return person(team)


def last(action):
    return AuditEntry.objects.filter(action=action).latest("pk")


def where(entry):
    return (entry.actor, entry.target, entry.team, entry.project)


def test_a_request_is_noted_with_what_was_asked(member, project):
    row = allocate(member, project, count=2, name="training", purpose="fine-tuning")
    entry = last("allocation.request")
    assert where(entry) == (member.username, "vision-train/training", "vision", "vision-train")
    assert entry.before is None
    assert entry.after["id"] == str(row.pk)
    assert {name: entry.after[name] for name in ("offering", "count", "purpose")} == {
        "offering": "l40s/whole",
        "count": 2,
        "purpose": "fine-tuning",
    }


def test_a_request_that_is_refused_is_not_noted(member, project):
    with pytest.raises(Refused):
        allocate(member, project, count=64)
    assert not AuditEntry.objects.filter(action="allocation.request").exists()


def test_an_extension_is_noted_with_the_hours_before_and_after(member, project):
    row = allocate(member, project)
    services.extend(member, row, Decimal(2))
    entry = last("allocation.extend")
    assert where(entry)[1:] == (f"vision-train/{row.name}", "vision", "vision-train")
    assert (entry.before, entry.after) == ({"hours": "8.000000"}, {"hours": "10.000000"})


def test_a_release_is_noted_once(member, project):
    row = allocate(member, project)
    services.release(member, row, "done")
    services.release(member, row, "done")
    (entry,) = AuditEntry.objects.filter(action="allocation.release")
    assert (entry.before, entry.after) == ({"desired": "held"}, {"desired": "released", "reason": "done"})


def test_a_retry_is_noted(member, project):
    row = allocate(member, project)
    type(row).objects.filter(pk=row.pk).update(needs_attention=True, start_failures=3)
    row.refresh_from_db()
    services.retry(member, row)
    assert last("allocation.retry").before == {"start_failures": 3}


def test_a_limit_is_noted_for_its_holder(member, team, project):
    pool = Pool.objects.get(key="l40s/gpu")
    limits.set_limit(System("ada"), team, pool, 3)
    entry = last("limit.set")
    assert where(entry) == ("ada", "vision/l40s/gpu", "vision", "")
    assert (entry.before["nominal"], entry.after["nominal"]) == (4, 3)
    limits.set_limit(System("ada"), project, pool, 2)
    assert where(last("limit.set"))[2:] == ("vision", "vision-train")
    limits.set_limit(System("ada"), Membership.objects.get(user=member), pool, 1)
    assert where(last("limit.set"))[2:] == ("vision", "")
    limits.set_limit(System("ada"), team.department, pool, 1)
    assert where(last("limit.set"))[2:] == ("", "")


def test_a_limit_that_is_taken_away_is_noted_with_what_it_was(member, project):
    limit = limits.set_limit(System("ada"), project, Pool.objects.get(key="l40s/gpu"), 2)
    limits.remove_limit(System("ada"), limit)
    entry = last("limit.remove")
    assert (entry.before["nominal"], entry.team) == (2, "vision")


def test_a_queue_policy_is_noted_with_what_it_was(team):
    limits.set_policy(System("ada"), team, {"weight": Decimal(2)})
    limits.set_policy(System("ada"), team, {"weight": Decimal(3), "reclaim": "Never"})
    entry = last("queue_policy.set")
    assert where(entry) == ("ada", "vision", "vision", "")
    assert entry.before == {"weight": "2.000", "reclaim": "Any", "within": "Never"}
    assert entry.after == {"weight": "3", "reclaim": "Never", "within": "Never"}


def test_a_price_is_noted_beside_the_one_before(member):
    prices.set_price(System("ada"), "l40s", Decimal("1.25"), "EUR", source="contract")
    entry = last("price.set")
    assert (entry.actor, entry.target, entry.team) == ("ada", "l40s", "")
    assert (entry.before["per_gpu_hour"], entry.before["source"]) == ("1.1", "test")
    assert (entry.after["per_gpu_hour"], entry.after["source"]) == ("1.25", "contract")


def test_a_flavors_decision_is_noted_with_before_and_after(member):
    catalog.configure_flavor(SYSTEM, Flavor.objects.get(name="l40s"), {"hidden": True, "title": "L40S"})
    entry = last("flavor.configure")
    assert (entry.before, entry.after) == ({"hidden": False, "title": ""}, {"hidden": True, "title": "L40S"})


def test_what_goes_with_a_flavors_gpu_is_noted(member):
    Flavor.objects.update(node_cpu_millicores=15_190, node_memory_mib=126_443, node_pods=57)
    catalog.configure_flavor(SYSTEM, Flavor.objects.get(name="l40s"), {"cpu_millicores_per_gpu": 12_000})
    entry = last("flavor.configure")
    assert (entry.before, entry.after) == ({"cpu_millicores_per_gpu": None}, {"cpu_millicores_per_gpu": 12_000})


def test_members_are_noted_with_their_roles(team):
    user = person(team, "viewer")
    members.add(System("ada"), team, user.username, "lead")
    assert (last("member.set").before, last("member.set").after) == ({"role": "viewer"}, {"role": "lead"})
    members.remove(System("ada"), team, user.username)
    members.remove(System("ada"), team, user.username)
    (entry,) = AuditEntry.objects.filter(action="member.remove")
    assert (entry.team, entry.before) == ("vision", {"role": "lead"})


def test_a_project_that_moves_is_noted_for_the_leads_of_both_teams(project, other_team):
    structure.move_project(System("olga"), project, other_team)
    entries = AuditEntry.objects.filter(action="project.move")
    assert {(entry.team, entry.project) for entry in entries} == {("vision", project.slug), ("language", project.slug)}
    assert {str(entry.before) for entry in entries} == {"{'team': 'vision'}"}


def test_a_project_that_is_archived_is_noted_with_when(project):
    structure.archive_project(System("olga"), project)
    entry = last("project.archive")
    assert where(entry) == ("olga", project.slug, "vision", project.slug)
    assert entry.before == {"archived_at": None}
    assert entry.after["archived_at"]


def test_a_token_that_is_revoked_is_noted_with_when(team):
    user = person(team)
    row, secret = tenants.issue_token(user, user, "ci", ["read"], timedelta(days=1))
    tenants.revoke_token(user, user, row.pk)
    entry = last("token.revoke")
    assert entry.before == {"revoked_at": None}
    assert entry.after["revoked_at"]
    assert not any(secret in str(vars(entry)) for entry in AuditEntry.objects.all())


def test_signing_in_is_noted_with_its_address(client, team):
    user = person(team)
    tenants.set_password(SYSTEM, user, SECRET)
    client.post("/login", {"username": user.username, "password": SECRET})
    entry = last("user.sign_in")
    assert (entry.actor, entry.target) == (user.username, user.username)
    assert (entry.source["way"], entry.source["address"]) == ("page", "127.0.0.1")


def test_a_wrong_password_is_noted_and_neither_it_nor_an_unknown_name_is_kept(client, team):
    user = person(team)
    client.post("/login", {"username": user.username, "password": "my-other-password"})
    assert (last("user.sign_in_refused").actor, last("user.sign_in_refused").target) == ("anonymous", user.username)
    client.post("/login", {"username": "my-secret-typed-here", "password": "x"})
    assert last("user.sign_in_refused").target == "a name that nobody has"
    everything = [str(vars(entry)) for entry in AuditEntry.objects.all()]
    assert not [words for words in everything if "my-other-password" in words or "my-secret-typed-here" in words]


def test_the_admin_is_entered_by_the_portals_own_door():
    assert Client().get("/admin/", follow=True).redirect_chain[-1][0] == "/login?next=/admin/"


def test_who_may_not_use_the_admin_is_told_so_instead_of_being_sent_in_circles(team):
    answer = browser_of(person(team)).get("/admin/", follow=True)
    assert answer.status_code == 403


def test_what_an_operator_does_in_the_admin_is_noted_as_such(team):
    operator = tenants.create_user(SYSTEM, "olga", SECRET, platform_role="operator")
    user = person(team, "viewer")
    values = {"username": user.username, "is_active": "on", "platform_role": "auditor"}
    assert browser_of(operator).post(f"/admin/tenants/user/{user.pk}/change/", values).status_code == 302
    entry = last("user.save")
    assert (entry.actor, entry.source["way"], entry.after) == ("olga", "admin", {"platform_role": "auditor"})


def test_a_password_set_in_the_admin_is_noted_and_not_kept(team):
    operator = tenants.create_user(SYSTEM, "olga", SECRET, platform_role="operator")
    user = person(team)
    words = {"password1": "quite another secret", "password2": "quite another secret", "usable_password": "true"}
    answer = browser_of(operator).post(f"/admin/tenants/user/{user.pk}/password/", words)
    assert answer.status_code == 302
    entry = last("user.set_password")
    assert (entry.actor, entry.target, entry.before, entry.after) == ("olga", user.username, None, None)


def test_people_are_noted_with_what_changed_of_them(team):
    user = person(team)
    user.platform_role = "auditor"
    tenants.save_person(System("olga"), user, ["platform_role", "password"])
    entry = last("user.save")
    assert (entry.before, entry.after) == ({"platform_role": ""}, {"platform_role": "auditor"})


def test_entries_cannot_be_written_in_the_admin(team):
    operator = browser_of(tenants.create_user(SYSTEM, "olga", SECRET, platform_role="operator"))
    pk = AuditEntry.objects.latest("pk").pk
    assert operator.get("/admin/core/auditentry/").status_code == 200
    assert operator.get(f"/admin/core/auditentry/{pk}/change/").status_code == 200
    for path in ("add/", f"{pk}/delete/"):
        assert operator.post(f"/admin/core/auditentry/{path}").status_code == 403


def test_the_way_in_is_known_only_during_the_work(db):
    with context.channel("command", command="seed"):
        audit("system", "test.write", "x")
    audit("system", "test.write", "y")
    assert AuditEntry.objects.get(target="x").source == {"way": "command", "command": "seed"}
    assert AuditEntry.objects.get(target="y").source == {}
