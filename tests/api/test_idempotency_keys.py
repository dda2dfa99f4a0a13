"""Every POST that creates something takes an Idempotency-Key, and compares what bodies mean."""

from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import connection
from drf_spectacular.generators import SchemaGenerator

from allocations.models import Allocation
from portal.core.locks import lock_id
from portal.core.models import IdempotentReply
from portal.tenants import members
from portal.tenants.actors import SYSTEM
from tests.support.people import client, person

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fleet_of_two_teams")]
URL = "/api/v1/allocations"
SECRETS = {"/api/v1/tokens", "/api/v1/credentials"}
MINIMAL = {"project": "vision-train", "offering": "l40s/whole"}


def post(api: Any, body: dict[str, Any], path: str = URL) -> Any:
    return api.post(path, body, format="json", headers={"Idempotency-Key": "k"})


def test_every_operation_that_creates_takes_a_key_except_those_that_answer_with_a_secret():
    paths = SchemaGenerator().get_schema(request=None, public=True)["paths"]
    posts = {path: found["post"] for path, found in paths.items() if "post" in found}
    creates = {path: operation for path, operation in posts.items() if "201" in operation["responses"]}
    assert set(creates) > SECRETS
    for path, operation in creates.items():
        names = [each["name"] for each in operation.get("parameters", [])]
        assert ("Idempotency-Key" in names) is (path not in SECRETS), path


CREATED_BY_OPERATORS = [
    ("departments", {"slug": "physics", "name": "Physics"}),
    ("teams", {"slug": "audio", "name": "Audio", "department": "research"}),
    ("projects", {"slug": "vision-new", "name": "New", "team": "vision"}),
    ("members", {"team": "vision", "username": "person-new", "role": "member"}),
    ("invitations", {"team": "vision", "invitee": "ada", "role": "member"}),
    ("limits", {"project": "vision-train", "nominal": 3}),
    ("prices", {"flavor": "l40s", "per_gpu_hour": "1.5"}),
    ("node-costs", {"flavor": "l40s", "term": "spot", "per": "gpu", "per_hour": "1.5"}),
    ("bills", {"cluster": "local", "month": "2026-01", "amount": "1000"}),
    ("shared-costs", {"name": "network", "month": "2090-01", "amount": "100", "split": "weighted"}),
    ("node-terms", {"cluster": "local", "node": "l40s-0", "term": "spot"}),
]


@pytest.mark.parametrize(("path", "body"), CREATED_BY_OPERATORS)
def test_a_key_lets_an_operator_create_once(path, body, api):
    new = person()
    body = {**body, "username": new.username} if "username" in body else body
    operator = client(person(platform_role="operator"))
    first, second = (post(operator, body, f"/api/v1/{path}") for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json() == first.json()
    assert second["Idempotent-Replayed"] == "true"
    assert second.get("ETag") == first.get("ETag")


@pytest.mark.parametrize(("path", "body"), CREATED_BY_OPERATORS)
def test_who_is_no_operator_any_more_does_not_get_the_answer_again(path, body, api):
    new, operator = person(), person(platform_role="operator")
    body = {**body, "username": new.username} if "username" in body else body
    rest = client(operator)
    assert post(rest, body, f"/api/v1/{path}").status_code == 201
    operator.platform_role = ""
    operator.save()
    refused, fresh = (
        rest.post(f"/api/v1/{path}", body, format="json", headers={"Idempotency-Key": key}) for key in ("k", "new")
    )
    assert (refused.status_code, refused.json()["reason"]) == (fresh.status_code, fresh.json()["reason"])
    assert refused.status_code in (403, 404)


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), (None, 404)])
def test_who_lost_the_role_in_a_team_does_not_get_the_answer_again(role, status, team, api):
    user = person(team)
    rest = client(user)
    made = post(rest, MINIMAL)
    extended = post(rest, {"hours": 1}, f"{URL}/{made.json()['id']}/extend")
    assert (made.status_code, extended.status_code) == (201, 200)
    members.add(SYSTEM, team, user.username, role) if role else members.remove(SYSTEM, team, user.username)
    assert post(rest, MINIMAL).status_code == status
    assert post(rest, {"hours": 1}, f"{URL}/{made.json()['id']}/extend").status_code == status
    members.add(SYSTEM, team, user.username, "member")
    assert post(rest, MINIMAL)["Idempotent-Replayed"] == "true"


def test_a_secret_is_never_stored(api):
    body = {"name": "x", "scopes": ["read"]}
    answers = [post(api, body, "/api/v1/tokens") for _ in range(2)]
    assert len({answer.json()["token"] for answer in answers}) == 2
    assert not IdempotentReply.objects.exists()


def test_a_repeated_answer_has_the_location_of_the_first(api):
    first, second = post(api, MINIMAL), post(api, MINIMAL)
    assert second["Location"] == first["Location"] == f"{URL}/{first.json()['id']}"


@pytest.mark.parametrize(
    "written",
    [
        {"count": 1, "mode": "hold", "priority": "normal", "requeue": True, "purpose": ""},
        {"hours": "8"},
        {"hours": 8.0, "ends_at": None},
        {"constraints": {}, "claim": None},
        {"constraints": {"spread": False}},
        {"give_up_after": 168},
        {"give_up_after": "168.0", "give_up_at": None},
    ],
)
def test_defaults_that_are_written_are_the_same_request_as_those_left_out(api, written):
    first, second = post(api, MINIMAL), post(api, {**MINIMAL, **written})
    assert (second.status_code, second.json()["id"]) == (201, first.json()["id"])
    assert Allocation.objects.count() == 1


NOW = datetime.now(UTC).replace(microsecond=0)


def later(*, days: int) -> str:
    return (NOW + timedelta(days=days)).isoformat()


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ({"starts_at": later(days=1)}, {"give_up_at": later(days=8)}),
        ({"starts_at": later(days=1)}, {"give_up_after": 168}),
        ({"starts_at": later(days=1), "ends_at": later(days=2)}, {"give_up_at": later(days=2)}),
        ({"starts_at": later(days=1), "ends_at": later(days=2)}, {"give_up_after": 24}),
        ({"starts_at": later(days=1), "ends_at": later(days=30)}, {"give_up_after": 168}),
    ],
)
def test_the_wait_that_is_the_default_of_the_given_times_may_be_written(body, written, api):
    first, second = (post(api, {**MINIMAL, **each}) for each in (body, {**body, **written}))
    assert (second.status_code, second.json().get("id")) == (201, first.json()["id"])


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ({}, {"give_up_after": 168, "give_up_at": later(days=7)}),
        ({"starts_at": later(days=1)}, {"give_up_after": 168, "give_up_at": later(days=8)}),
        ({"starts_at": later(days=1)}, {"give_up_at": later(days=7)}),
        ({"starts_at": later(days=1), "ends_at": later(days=2)}, {"give_up_after": 168}),
        ({"ends_at": later(days=30)}, {"give_up_at": later(days=30)}),
    ],
)
def test_a_wait_that_is_not_the_default_is_another_request(body, written, api):
    post(api, {**MINIMAL, **body})
    assert post(api, {**MINIMAL, **body, **written}).json()["reason"] == "key_reused"


PROJECT = {"slug": "vision-new", "name": "New", "team": "vision"}


@pytest.mark.parametrize(
    ("path", "body", "written"),
    [
        ("projects", PROJECT, {"namespace": "vision-new"}),
        ("projects", PROJECT, {"config_size_kib": 128}),
        ("projects", PROJECT, {"object_limits": {}}),
        ("projects", PROJECT, {"object_limits": {"pods": None, "jobs": 500}}),
        ("projects", PROJECT, {"object_limits": {"cronjobs": 0}}),
        ("projects", {**PROJECT, "object_limits": {"jobs": 400}}, {"object_limits": {"jobs": 400, "pods": 2000}}),
        ("prices", {"flavor": "l40s", "per_gpu_hour": "1.5"}, {"currency": "EUR"}),
    ],
)
def test_a_default_that_depends_on_the_rest_may_be_written_too(path, body, written, api):
    operator = client(person(platform_role="operator"))
    first, second = (post(operator, each, f"/api/v1/{path}") for each in (body, {**body, **written}))
    assert (first.status_code, second.status_code) == (201, 201)
    assert second["Idempotent-Replayed"] == "true"


def test_while_the_first_request_runs_the_second_is_told_when_to_come_again(api, member):
    key = [lock_id("idempotency", str(member.pk), f"POST {URL}", "k")]
    with closing(connection.copy()) as first, first.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", key)
        answer = post(api, MINIMAL)
        cursor.execute("SELECT pg_advisory_unlock(%s)", key)
    assert (answer.status_code, answer.json()["reason"], answer["Retry-After"]) == (409, "in_progress", "1")
    assert post(api, MINIMAL).status_code == 201


def test_the_same_time_in_another_zone_is_the_same_request(api):
    end = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
    zones = (UTC, timezone(timedelta(hours=2)))
    first, second = (post(api, {**MINIMAL, "ends_at": end.astimezone(zone).isoformat()}) for zone in zones)
    assert (second.status_code, second.json()["id"]) == (201, first.json()["id"])


def test_another_value_is_another_request(api):
    post(api, MINIMAL)
    assert post(api, {**MINIMAL, "hours": 9}).json()["reason"] == "key_reused"
    assert post(api, {**MINIMAL, "give_up_after": 9}).json()["reason"] == "key_reused"


@pytest.mark.parametrize(
    "written",
    [
        {"config_size_kib": 64},
        {"object_limits": {"jobs": 400}},
        {"object_limits": {"cronjobs": 20}},
        {"object_limits": {"shoes": None}},
    ],
)
def test_a_project_with_another_limit_is_another_request(written, api):
    operator = client(person(platform_role="operator"))
    post(operator, PROJECT, "/api/v1/projects")
    assert post(operator, {**PROJECT, **written}, "/api/v1/projects").json()["reason"] == "key_reused"
