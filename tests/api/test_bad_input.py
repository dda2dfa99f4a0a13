"""Bad input gets the right status, a helpful message, no traceback, and writes nothing."""

import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from allocations.models import Allocation, Transition
from tests.support.fleet import fleet
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
URL = "/api/v1/allocations"
NOW = datetime.now(UTC)
BAD_COUNTS: list[object] = [0, -1, 10**6, 10**30, "2", 2.0, 1.5, True, [], {}, None]
BAD_HOURS: list[object] = [0, -1, "0", "NaN", "inf", "x", "1e400", "0.0000001", True, [1], 1e9]


@pytest.fixture
def api(team, other_team, project):
    fleet(team, other_team)
    return client(person(team))


@pytest.fixture(autouse=True)
def nothing_written(db):
    yield
    assert not Allocation.objects.exists()
    assert not Transition.objects.exists()


@pytest.mark.parametrize("path", ["offerings/%00/claim/device-schema", "flavors/a%00"])
def test_a_name_that_none_can_have_is_not_there(api, path):
    assert client(person(platform_role="operator")).get(f"/api/v1/{path}").status_code == 404


def test_a_field_of_half_a_character_is_told_back(api):
    answer = api.generic("POST", URL, '{"\\ud800": 1}', content_type="application/json")
    assert answer.status_code == 400
    assert "\\ud800" in answer.content.decode()


def past(hours: float) -> str:
    return (NOW - timedelta(hours=hours)).isoformat()


def ahead(hours: float) -> str:
    return (NOW + timedelta(hours=hours)).isoformat()


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        *(({"count": count}, "count", "count_invalid") for count in BAD_COUNTS),
        *(({"hours": hours}, "hours", "time_invalid") for hours in BAD_HOURS),
        ({"hours": 1, "ends_at": ahead(1)}, "hours", "time_invalid"),
        ({"ends_at": past(1)}, "ends_at", "time_invalid"),
        ({"ends_at": ahead(9000)}, "ends_at", "time_invalid"),
        ({"ends_at": "tomorrow"}, "ends_at", "time_invalid"),
        ({"ends_at": 5}, "ends_at", "time_invalid"),
        ({"give_up_at": "2d"}, "give_up_at", "time_invalid"),
        ({"give_up_at": past(1)}, "give_up_at", "time_invalid"),
        ({"starts_at": ahead(2), "give_up_at": ahead(1)}, "give_up_at", "time_invalid"),
        ({"ends_at": "2126-11-21"}, "ends_at", "time_invalid"),
        ({"ends_at": "2126-11-21T10:00:00"}, "ends_at", "time_invalid"),
        ({"ends_at": "0001-01-01T00:00:00+23:59"}, "ends_at", "time_invalid"),
        ({"starts_at": past(1)}, "starts_at", "time_invalid"),
        ({"starts_at": "9999-12-31T23:59:59Z"}, "starts_at", "time_invalid"),
        ({"starts_at": ahead(2), "ends_at": ahead(1)}, "ends_at", "time_invalid"),
        ({"project": None}, "project", "invalid"),
        ({"project": ""}, "project", "invalid"),
        ({"project": 5}, "project", "invalid"),
        ({"project": "a\x00b"}, "project", "invalid"),
        ({"project": "\ud800"}, "project", "invalid"),
        ({"offering": ["l40s/whole"]}, "offering", "invalid"),
        ({"mode": "job"}, "mode", "invalid"),
        ({"mode": {}}, "mode", "invalid"),
        ({"priority": "urgent"}, "priority", "invalid"),
        ({"requeue": "yes"}, "requeue", "invalid"),
        ({"purpose": "x" * 501}, "purpose", "invalid"),
        ({"purpose": 7}, "purpose", "invalid"),
        ({"labels": []}, "labels", "invalid"),
        ({"labels": {"app": 1}}, "labels.app", "invalid"),
        ({"labels": {"app": None}}, "labels.app", "invalid"),
        ({"labels": {"": "x"}}, "labels", "invalid"),
        ({"labels": {"a b": "x"}}, "labels", "invalid"),
        ({"labels": {"app": "-"}}, "labels", "invalid"),
        ({"labels": {"app": "x" * 64}}, "labels", "invalid"),
        ({"labels": {"x/y/z": "x"}}, "labels", "invalid"),
        ({"labels": {f"app{n}": "x" for n in range(17)}}, "labels", "invalid"),
        ({"name": "Not A Label"}, "name", "invalid"),
        ({"name": "a" * 49}, "name", "invalid"),
        ({"name": "-a"}, "name", "invalid"),
        ({"name": "a\n"}, "name", "invalid"),
        ({"gpus": 2}, "gpus", "invalid"),
        ({"job": {"image": "x"}}, "job", "invalid"),
        ({"workspace": {"template": "x"}}, "workspace", "invalid"),
        ({"claim": {}}, "claim", "invalid"),
        ({"constraints": {"spread": "yes"}}, "constraints.spread", "invalid"),
        ({"constraints": {"rack": 1}}, "constraints.rack", "invalid"),
        ({"constraints": []}, "constraints", "invalid"),
    ],
)
def test_a_field_that_cannot_be_is_named_with_words_that_help(api, change, field, reason):
    body = {"project": "vision-train", "offering": "l40s/whole", **change}
    for path in (URL, f"{URL}/preview"):
        answer = api.post(path, json.dumps(body), content_type="application/json")
        problem = answer.json()
        assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
        assert problem["reason"] == reason
        assert field in problem["errors"]
        assert all(len(sentence) > 10 for sentence in problem["errors"][field])


@pytest.mark.parametrize("field", ["project", "offering"])
def test_what_is_needed_and_missing_is_named(api, field):
    body = {"project": "vision-train", "offering": "l40s/whole"}
    del body[field]
    answer = api.post(URL, body, format="json")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])


@pytest.mark.parametrize("change", [{"project": "nope"}, {"offering": "nope/whole"}])
def test_what_does_not_exist_is_404_and_says_where_to_look(api, change):
    answer = api.post(URL, {"project": "vision-train", "offering": "l40s/whole", **change}, format="json")
    assert answer.status_code == 404
    assert "GET /" in answer.json()["hint"]


@pytest.mark.parametrize("body", ["", "{", "[]", '"x"', "null", "5", "NaN", '{"count": NaN}', "[" * 100_000, "\xff"])
def test_a_body_that_is_no_object_is_400(api, body):
    answer = api.post(URL, body, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["detail"]


def test_ten_megabytes_are_413(api):
    body = json.dumps({"project": "vision-train", "offering": "l40s/whole", "purpose": "x" * 10_000_000})
    answer = api.post(URL, body, content_type="application/json")
    assert (answer.status_code, answer.json()["reason"]) == (413, "too_large")


def test_another_content_type_is_415(api):
    answer = api.post(URL, "project=vision-train", content_type="application/x-www-form-urlencoded")
    assert answer.status_code == 415
    assert "application/json" in answer.json()["hint"]


@pytest.mark.parametrize("id_", ["nope", "5", "00000000-0000-4000-8000-000000000000", "%00", "..%2f..", "x" * 2000])
def test_an_id_that_is_nobodys_is_404(api, id_):
    for path in ("", "/events", "/manifests", "/connect"):
        answer = api.get(f"{URL}/{id_}{path}")
        assert (answer.status_code, answer.json()["reason"]) == (404, "not_found")


@pytest.mark.parametrize("path", ["release", "extend", "retry"])
def test_an_action_on_nobodys_id_is_404(api, path):
    body = {"hours": 1} if path == "extend" else {}
    assert api.post(f"{URL}/{uuid4()}/{path}", body, format="json").status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("release", {"force": True}, "force"),
        ("release", {"reason": 5}, "reason"),
        ("extend", {}, "hours"),
        ("extend", {"hours": "-1"}, "hours"),
        ("extend", {"hours": None}, "hours"),
        ("retry", {"now": True}, "now"),
    ],
)
def test_an_action_with_a_body_that_cannot_be_is_400(api, path, body, field):
    answer = api.post(f"{URL}/{uuid4()}/{path}", body, format="json")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_another_method_is_405_and_says_which_there_are(api, method):
    answer = getattr(api, method)(URL, {}, format="json")
    assert answer.status_code == 405
    assert answer["Allow"]
