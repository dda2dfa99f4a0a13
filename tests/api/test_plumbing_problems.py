"""Every error is answered as a problem with reason and hint, and nothing is written."""

from typing import Any

import pytest
from django.test import Client
from rest_framework.decorators import api_view
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory, force_authenticate

from portal.api.http.problems import as_problem
from portal.core.errors import Retryable
from portal.http.person_limits import limit_client
from portal.tenants.models import ApiToken
from tests.support.people import client, person

pytestmark = pytest.mark.django_db


def call(error):
    @api_view(["GET"])
    def view(request):
        raise error

    request = APIRequestFactory().get("/api/v1/x")
    force_authenticate(request, person())
    answer = limit_client(view)(request)
    assert isinstance(answer, Response)
    return answer.render()


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/", "/api/v2/me", "/api/v1/me/"])
@pytest.mark.parametrize("method", ["get", "post", "delete"])
def test_an_unknown_route_is_a_problem(path, method):
    answer = getattr(Client(), method)(path)
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["reason"] == "not_found"


@pytest.mark.parametrize(
    ("body", "content_type", "status", "reason"),
    [
        ("{", "application/json", 400, "malformed"),
        ("a=1", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        ("[]", "application/json", 400, "invalid"),
        ('{"name": "x", "scopes": "read"}', "application/json", 400, "invalid"),
        ('{"name": "x", "scopes": ["all"]}', "application/json", 400, "invalid"),
        ('{"name": "x", "scopes": ["read"], "expires_at": "yesterday"}', "application/json", 400, "invalid"),
        (
            '{"name": "x", "scopes": ["read"], "expires_at": "2001-01-01T00:00:00Z"}',
            "application/json",
            400,
            "invalid",
        ),
        (b"\xff\xfe", "application/json", 400, "malformed"),
    ],
)
def test_bad_input_is_answered_in_words_and_writes_nothing(team, body, content_type, status, reason):
    api = client(person(team))
    before = ApiToken.objects.count()
    answer = api.generic("POST", "/api/v1/tokens", body, content_type=content_type)
    assert (answer.status_code, answer.json()["reason"]) == (status, reason)
    assert answer["Content-Type"] == "application/problem+json"
    assert ApiToken.objects.count() == before


def test_invalid_fields_are_named_with_their_place(team):
    answer = client(person(team)).post("/api/v1/tokens", {"scopes": ["read", "all"]}, format="json").json()
    assert set(answer["errors"]) == {"name", "scopes.1"}


def test_a_wrong_method_lists_the_right_ones(team):
    answer = client(person(team)).put("/api/v1/me", {}, format="json")
    assert answer.status_code == 405
    assert set(answer["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}


def test_ten_megabytes_are_refused_before_they_are_read(team):
    class Unread:
        def read(self, *size):
            raise AssertionError("the body was read")

        readline = read

    declared: dict[str, Any] = {"CONTENT_LENGTH": str(10 * 2**20), "wsgi.input": Unread()}
    answer = client(person(team)).post("/api/v1/tokens", content_type="application/json", **declared)
    assert (answer.status_code, answer.json()["reason"]) == (413, "too_large")


@pytest.mark.parametrize("length", ["-1", "many", "1e3"])
def test_a_length_that_is_no_number_is_refused(length):
    assert Client().post("/api/v1/tokens", CONTENT_LENGTH=length).status_code == 413


def test_an_unforeseen_error_is_500_without_its_text():
    answer = call(RuntimeError("secret detail"))
    assert answer.status_code == 500
    assert b"secret detail" not in answer.content
    assert b"Traceback" not in answer.content


def test_what_is_busy_says_when_to_come_back():
    answer = call(Retryable("locked"))
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")


def test_nested_errors_are_flat():
    errors = as_problem(
        ValidationError({"job": {"image": ["Required."], "env": [{}, {"name": ["Too long."]}]}, "count": "Whole."})
    ).errors
    assert errors == {"job.image": ["Required."], "job.env.1.name": ["Too long."], "count": ["Whole."]}
