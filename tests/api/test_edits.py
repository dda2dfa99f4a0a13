"""What GET gives PUT and PATCH take, for every resource that has them, in the world of the access matrix."""

import json
from itertools import product
from typing import Any

import pytest
from django.urls import resolve
from rest_framework.test import APIClient

from portal.api.urls import v1
from portal.core.models import AuditEntry, WorkItem
from tests.support import api_contract
from tests.support.people import client, person
from tests.support.world import World, world

pytestmark = pytest.mark.django_db
MERGE_PATCH = "application/merge-patch+json"
KINDS = {"PUT": "application/json", "PATCH": MERGE_PATCH}
METHODS = tuple(KINDS)
RESOURCES = [f"/api/v1/{route.pattern}" for route in v1 if hasattr(route.callback.cls, "put")]


@pytest.fixture
def there(team, other_team, project) -> World:
    return world(team, other_team, project)


@pytest.fixture
def addresses(there) -> list[str]:
    """Return the address of one of each resource: all in one world, which takes a second to make."""
    return [there.path(pattern, "operator") for pattern in RESOURCES]


@pytest.fixture
def operator(fleet_of_two_teams: None) -> APIClient:
    """Return the client of an operator of two teams: the whole world takes a second to make."""
    return client(person(platform_role="operator"))


def send(api: APIClient, address: str, body: Any, method: str = "PUT", tag: str = "", kind: str = "") -> Any:
    tag = tag or api.get(address)["ETag"]
    kind = kind or KINDS[method]
    return api.generic(method, address, json.dumps(body), kind, HTTP_IF_MATCH=tag)


def written() -> tuple[int, list[Any]]:
    return AuditEntry.objects.count(), list(WorkItem.objects.order_by("pk").values())


def fields(address: str) -> dict[str, Any]:
    """Return the schemas of the fields that PUT takes."""
    found: dict[str, Any] = api_contract.body_schema("PUT", f"/{resolve(address).route}")["properties"]
    return found


def test_every_resource_that_has_put_has_patch_with_the_same_body():
    paths = api_contract.document()["paths"]
    assert len(RESOURCES) >= 9
    for path, methods in paths.items():
        assert ("put" in methods) == ("patch" in methods), path
        if "put" in methods:
            put, patch = (methods[each]["requestBody"]["content"] for each in ("put", "patch"))
            assert put == {"application/json": patch[MERGE_PATCH]}, path


def test_what_get_gives_and_an_empty_change_are_taken_and_write_nothing(there, addresses):
    api = there.clients["operator"]
    for address, method in product(addresses, METHODS):
        seen, before = api.get(address), written()
        empty: dict[str, object] = {}
        for body in (seen.json(), empty):
            answer = send(api, address, body, method)
            assert (answer.status_code, answer.json(), answer["ETag"]) == (200, seen.json(), seen["ETag"]), address
        assert written() == before, address


def test_the_schema_takes_what_get_gives(there, addresses):
    for address in addresses:
        assert set(fields(address)) == set(there.clients["operator"].get(address).json()), address


def test_read_only_fields_that_differ_are_refused_by_their_names(there, addresses):
    observed = {"used", "node_share", "node_share_max", "last_login"}  # what changes by itself is ignored
    for address in addresses:
        seen = there.clients["operator"].get(address).json()
        fixed = {name for name, schema in fields(address).items() if schema.get("readOnly")}
        answer = send(there.clients["operator"], address, {**seen, **dict.fromkeys(fixed, "another")})
        assert (answer.status_code, set(answer.json()["errors"])) == (400, fixed - observed), address


def test_a_change_that_comes_back_as_it_was_leaves_the_document_as_it_was(operator):
    address = "/api/v1/policies/teams/vision"
    for weight in ("1", "1.000", 1):
        assert send(operator, address, {"weight": weight}).json()["weight"] == "1"
    assert send(operator, address, {"weight": "2.50"}).json()["weight"] == "2.5"
    assert send(operator, address, {"weight": "1"}, "PATCH").json()["weight"] == "1"


@pytest.mark.parametrize("method", METHODS)
def test_what_is_left_out_stays_as_it_is(operator, method):
    for address, body, kept in (
        ("policies/teams/vision", {"weight": "3"}, {"reclaim": "LowerPriority", "within": "LowerPriority"}),
        ("projects/vision-train", {"object_limits": {"secrets": 7}}, {"name": "Training"}),
    ):
        assert send(operator, f"/api/v1/{address}", kept).status_code == 200
        answer = send(operator, f"/api/v1/{address}", body, method)
        assert answer.status_code == 200, answer.json()
        assert kept.items() <= answer.json().items()


def test_what_a_limit_lends_and_borrows_stays_as_it_is(operator):
    body = {"team": "vision", "pool": "l40s/gpu", "nominal": 3, "borrowing": 2, "lending": 1}
    address = f"/api/v1/limits/{operator.post('/api/v1/limits', body, format='json').json()['id']}"
    answer = send(operator, address, {"nominal": 4}).json()
    assert (answer["nominal"], answer["borrowing"], answer["lending"]) == (4, 2, 1)
    assert send(operator, address, {"lending": None}, "PATCH").json()["lending"] is None


def test_null_in_a_merge_patch_is_refused_where_there_is_always_a_value(operator):
    answer = send(operator, "/api/v1/teams/vision", {"name": None}, "PATCH")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["name"])


def test_a_change_needs_the_version_it_changes(there, addresses):
    api = there.clients["operator"]
    for address, (method, kind) in product(addresses, KINDS.items()):
        assert api.generic(method, address, "{}", kind).status_code == 428, address
        assert send(api, address, {}, method, '"stale"').status_code == 412, address


def test_put_and_patch_take_their_media_types(operator):
    address = "/api/v1/teams/vision"
    for method, kind, status in (
        *(("PATCH", MERGE_PATCH, 200), ("PATCH", "application/json", 200), ("PUT", "application/json", 200)),
        *(("PUT", MERGE_PATCH, 415), ("PATCH", "application/json-patch+json", 415)),
    ):
        assert send(operator, address, {}, method, kind=kind).status_code == status, (method, kind)


def test_a_lead_sends_the_whole_project_and_changes_its_name(team, project):
    lead, address = client(person(team, "lead")), "/api/v1/projects/vision-train"
    seen = lead.get(address)
    body = {**seen.json(), "name": "Training"}
    answer = lead.put(address, body, format="json", headers={"If-Match": seen["ETag"]})
    assert (answer.status_code, answer.json()) == (200, body)
    refused = lead.put(address, {**body, "egress": "internet"}, format="json", headers={"If-Match": "*"})
    assert refused.status_code == 403


def test_no_field_of_a_change_is_required_and_what_it_cannot_change_is_read_only():
    for pattern in RESOURCES:
        body = api_contract.body_schema("PUT", pattern)
        assert body.get("required", []) == [], pattern
        assert any(field.get("readOnly") for field in body["properties"].values()), pattern
