"""The OpenAPI schema: complete and regular, so that a generated client can rely on it."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.http import HttpResponse, JsonResponse
from django.test import RequestFactory

from allocations.domain.admission import PRIORITIES
from allocations.domain.phases import PHASES, REACHED, Phase
from portal.api.schemas.problem_output import TYPES
from portal.api.urls import v1
from portal.tenants.models import Guard
from quotas.limits.models import Reclaim, Within
from tests.support import api_contract

COMPONENTS = "#/components/schemas/"


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in api_contract.document()["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def components() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = api_contract.document()["components"]["schemas"]
    return found


def operation_of(method: str, path: str) -> dict[str, Any]:
    found: dict[str, Any] = api_contract.document()["paths"][f"/api/v1/{path}"][method]
    return found


def reasons(operation: dict[str, Any], status: int) -> set[str]:
    """Return the reasons that an operation may give with a status."""
    if str(status) not in operation["responses"]:
        return set()
    schema = operation["responses"][str(status)]["content"]["application/problem+json"]["schema"]
    names = [each["$ref"].removeprefix(COMPONENTS) for each in schema.get("oneOf", [schema])]
    return {components()[name]["properties"]["reason"]["const"] for name in names}


def test_every_route_is_described_without_a_warning(tmp_path):
    file = tmp_path / "schema.yaml"
    call_command("spectacular", "--validate", "--fail-on-warn", f"--file={file}")
    described = file.read_text(encoding="utf-8")
    assert "openapi: 3.1.0" in described
    routes = [
        str(route.pattern).replace("<str:", "{").replace("<int:", "{").replace("<uuid:", "{").replace(">", "}")
        for route in v1
    ]
    assert [route for route in routes if f"/api/v1/{route}:" not in described and route != "schema"] == []


def test_operation_ids_are_unique_and_say_what_is_done():
    ids = [operation["operationId"] for _, _, operation in operations()]
    assert len(set(ids)) == len(ids)
    assert {
        *("allocations_list", "allocations_create", "allocations_retrieve", "allocations_release"),
        *("allocations_preview", "allocations_events_list", "departments_update", "tokens_destroy"),
        *("me_invitations_accept", "projects_kubeconfig_retrieve", "offerings_list", "queues_retrieve"),
    } <= set(ids)


def test_every_list_of_pages_is_an_operation_named_list():
    named = {operation["operationId"] for _, _, operation in operations() if operation["operationId"].endswith("_list")}
    paged = {operation["operationId"] for _, _, operation in operations() if answers_page(operation)}
    assert named == paged


def answers_page(operation: dict[str, Any]) -> bool:
    content = operation["responses"].get("200", {}).get("content", {}).get("application/json", {})
    return str(content.get("schema", {}).get("$ref", "")).endswith("Page")


def test_every_operation_has_a_summary_of_its_own():
    for path, methods in api_contract.document()["paths"].items():
        summaries = [operation["summary"] for operation in methods.values()]
        assert all(summaries), path
        assert len(set(summaries)) == len(summaries), path


def test_every_operation_declares_that_it_needs_a_token():
    for path, method, operation in operations():
        assert {"token": []} in operation["security"], f"{method} {path}"
        assert reasons(operation, 401) == {"not_authenticated", "token_invalid"}, f"{method} {path}"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (403, {"role_missing"}),
        (406, {"not_acceptable"}),
        (429, {"throttled"}),
        (500, {"internal"}),
        (503, {"busy", "cluster_store_full"}),
    ],
)
def test_every_operation_declares_what_may_go_wrong_anywhere(status, expected):
    assert {operation["operationId"] for _, _, operation in operations() if reasons(operation, status) != expected} == (
        set()
    )


def test_every_operation_with_a_parameter_in_its_path_may_be_404():
    assert [path for path, _, operation in operations() if "{" in path and not reasons(operation, 404)] == []


def test_every_put_and_patch_requires_if_match_and_tells_the_new_version():
    for path, method, operation in operations():
        if method in ("put", "patch"):
            headers = {each["name"]: each["required"] for each in operation["parameters"] if each["in"] == "header"}
            assert headers == {"If-Match": True}, path
            assert (reasons(operation, 412), reasons(operation, 428)) == ({"if_match_stale"}, {"if_match_missing"})
            assert operation["responses"]["200"]["headers"]["ETag"]["required"], path


def test_every_operation_that_takes_a_key_declares_its_refusals():
    for path, _, operation in operations():
        takes_key = any(each["name"] == "Idempotency-Key" for each in operation.get("parameters", ()))
        assert ("in_progress" in reasons(operation, 409)) == takes_key, path
        assert (reasons(operation, 422) == {"key_reused"}) == takes_key, path


def test_every_operation_whose_first_request_may_still_run_says_when_to_send_it_again():
    for path, _, operation in operations():
        if "in_progress" in reasons(operation, 409):
            assert "Retry-After" in operation["responses"]["409"]["headers"], path


def test_a_request_declares_each_kind_of_limit_as_a_type_of_its_own():
    assert reasons(operation_of("post", "allocations"), 409) == {
        *("offering_hidden", "never_fits", "too_complex", "count_invalid", "quota_exceeded", "limit_exceeded"),
        *("in_progress", "name_taken", "wrong_phase"),
    }
    assert reasons(operation_of("post", "allocations"), 400) == {
        *("invalid", "count_invalid", "time_invalid", "malformed"),
    }


def test_every_problem_type_is_told_by_its_type_reason_and_status():
    described = {name: schema["properties"] for name, schema in components().items() if name.endswith("Problem")}
    told = {
        (members["reason"]["const"], members["status"]["const"], members["type"]["const"])
        for members in described.values()
    }
    assert told <= {(each.reason, each.status, each.uri) for each in TYPES.values()}
    assert len(told) == len(described)


def test_no_problem_type_is_declared_by_no_operation_except_405():
    declared = {
        (reason, int(status))
        for _, _, o in operations()
        for status in o["responses"]
        if int(status) >= 400
        for reason in reasons(o, int(status))
    }
    assert set(TYPES) - declared == {("method_not_allowed", 405)}


def test_every_page_has_next_previous_and_results():
    pages = {name: schema for name, schema in components().items() if name.endswith("Page")}
    assert pages
    for name, schema in pages.items():
        assert {"next", "previous", "results"} <= set(schema["properties"]) == set(schema["required"]), name
        assert "null" in schema["properties"]["next"]["type"], name


def test_every_page_takes_cursor_and_limit():
    for path, _, operation in operations():
        if answers_page(operation):
            assert {"cursor", "limit"} <= {each["name"] for each in operation["parameters"]}, path


@pytest.mark.parametrize("path", ["projects", "members", "invitations"])
def test_lists_of_a_team_declare_their_filter(path):
    assert "team" in {each["name"] for each in operation_of("get", path)["parameters"]}


def test_every_object_is_closed_except_the_content_of_the_caller():
    """Objects that hold a table say what its values are; a claim, evidence and the audit log hold what somebody else
    decides: of devices, their driver. A row of costs has a field named ``properties``.
    """
    assert set(open_objects(api_contract.closed()["components"]["schemas"], "")) == {
        "/AllocationOut/properties/claim",
        "/CostRowOut/properties",
        *(f"/IntervalEvidenceOut/properties/{name}" for name in ("start", "end")),
        *(f"/EntryOut/properties/{name}" for name in ("before", "after", "source")),
        "/DeviceOut/properties/attributes",
        *(f"/{name}/properties/geometry" for name in ("FlavorOut", "FlavorDecision")),
    }


def open_objects(part: Any, place: str) -> Iterator[str]:
    """Yield the places of objects that take any member."""
    if isinstance(part, list):
        for each in part:
            yield from open_objects(each, place)
    if isinstance(part, dict):
        names = part.get("properties")
        if isinstance(names, dict) and part.get("additionalProperties") is not False:
            yield place
        if names is None and "object" in part.get("type", ()) and not part.get("additionalProperties"):
            yield place
        for name, each in part.items():
            if name != "not":  # the fields that exclude each other
                yield from open_objects(each, f"{place}/{name}")


def test_every_member_of_an_answer_is_required():
    optional = {"dimension", "limit", "used", "requested"}  # of what exceeds a limit
    requests = {
        body["schema"]["$ref"].removeprefix(COMPONENTS)
        for _, _, operation in operations()
        for body in operation.get("requestBody", {"content": {}})["content"].values()
    }
    for name, schema in components().items():
        if name.endswith(("Out", "Page", "Problem")) and name not in requests:
            assert set(schema["properties"]) - set(schema["required"]) <= optional, name


def test_phase_outcome_and_priority_are_those_of_the_domain():
    allocation = components()["AllocationOut"]["properties"]
    assert components()["Phase"]["enum"] == [each for each in Phase if each in {rule.phase for rule in PHASES}]
    assert components()["Outcome"]["enum"] == list(REACHED)
    assert allocation["phase"]["$ref"] == f"{COMPONENTS}Phase"
    asked = components()["AllocationRequest"]["properties"]["priority"]
    for described in (allocation["priority"], asked):
        [reference] = [each["$ref"] for each in described.get("allOf", [described])]
        assert components()[reference.removeprefix(COMPONENTS)]["enum"] == list(PRIORITIES)


@pytest.mark.parametrize(
    ("component", "member", "values"),
    [
        ("ReleaseProblemOut", "reason", ["not_found", "role_missing"]),
        ("WarningOut", "reason", ["not_isolated"]),
        ("WarningPreviewedOut", "reason", ["not_isolated"]),
        ("GuardOut", "guard", Guard.values),
        ("PolicyBody", "reclaim", Reclaim.values),
        ("PolicyBody", "within", Within.values),
        ("EndsOut", "namespace", ["deleted", "kept"]),
    ],
)
def test_what_has_few_values_is_an_enumeration_of_them(component, member, values):
    described = components()[component]["properties"][member]
    [reference] = [each["$ref"] for each in described.get("allOf", [described])]
    assert components()[reference.removeprefix(COMPONENTS)]["enum"] == values


def test_the_schema_names_its_server():
    assert [server["url"] for server in api_contract.document()["servers"]] == ["/"]


@pytest.fixture
def me() -> dict[str, Any]:
    return {
        "username": "ada",
        "platform_role": "",
        "teams": [],
        "projects": [],
        "scopes": ["read"],
        "token_expires_at": None,
    }


def differences(response: HttpResponse) -> list[str]:
    return list(api_contract.differences_of(RequestFactory().get("/api/v1/me"), response))


def test_the_comparison_accepts_an_answer_as_described(me):
    assert differences(JsonResponse(me)) == []


def test_the_comparison_finds_an_undeclared_member(me):
    [found] = differences(JsonResponse({**me, "shoe_size": 43}))
    assert "shoe_size" in found


def test_the_comparison_finds_a_missing_member(me):
    del me["scopes"]
    [found] = differences(JsonResponse(me))
    assert "scopes" in found


def test_the_comparison_finds_an_undeclared_status(me):
    [found] = differences(JsonResponse(me, status=202))
    assert "not declared" in found


def test_the_comparison_finds_an_undeclared_content_type(me):
    [found] = differences(JsonResponse(me, content_type="text/html"))
    assert "text/html" in found


def test_the_comparison_finds_a_problem_of_another_operation():
    problem = {"type": "urn:gpu-portal:problem:last_lead", "reason": "last_lead", "status": 403}
    found = differences(JsonResponse(problem, status=403, content_type="application/problem+json"))
    assert any("role_missing" in each for each in found)


def test_the_comparison_finds_a_missing_header():
    body = {"type": "urn:gpu-portal:problem:throttled", "reason": "throttled", "status": 429}
    body |= {"title": "Too many requests", "detail": "Wait.", "hint": ""}
    [found] = differences(JsonResponse(body, status=429, content_type="application/problem+json"))
    assert "Retry-After" in found
