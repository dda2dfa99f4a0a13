"""Lists in another order, from a time on, and with some fields only."""

from datetime import timedelta

import pytest
from django.urls import URLPattern

from allocations.models import Allocation
from portal.api.http.openapi import page_of
from portal.api.urls import v1
from tests.support.fleet import allocate
from tests.support.people import client, person

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fleet_of_two_teams")]
URL = "/api/v1/allocations"


@pytest.fixture
def rows(member, project):
    """Yield five allocations, of which several share an offering, a minute apart."""
    made = [
        allocate(member, project, offering, name=name)
        for name, offering in (
            ("c", "l40s/whole"),
            ("a", "h100/whole"),
            ("e", "l40s/whole"),
            ("b", "h100/whole"),
            ("d", "l40s/whole"),
        )
    ]
    for minute, row in enumerate(made):
        row.created_at += timedelta(minutes=minute)
        Allocation.objects.filter(pk=row.pk).update(created_at=row.created_at)
    return made


def names(answer):
    return [row["name"] for row in answer.json()["results"]]


@pytest.mark.parametrize(
    ("ordering", "expected"),
    [("name", "abcde"), ("-name", "edcba"), ("created_at", "caebd"), ("-created_at", "dbeac"), ("", "dbeac")],
)
def test_a_list_comes_in_the_order_that_is_asked(api, rows, ordering, expected):
    assert names(api.get(URL, {"ordering": ordering} if ordering else {})) == list(expected)


@pytest.mark.parametrize("ordering", ["name", "-name", "offering", "-offering", "-project"])
def test_pages_of_an_order_have_each_row_once_there_and_back(api, rows, ordering):
    answer = api.get(URL, {"ordering": ordering, "limit": 2})
    pages = [names(answer)]
    found = list(pages[0])
    while following := answer.json()["next"]:
        answer = api.get(following)
        pages.append(names(answer))
        found += pages[-1]
    assert found == names(api.get(URL, {"ordering": ordering}))
    assert sorted(found) == list("abcde")
    assert names(api.get(answer.json()["previous"])) == pages[-2]


def test_a_row_that_is_added_meanwhile_moves_none_of_those_that_follow(api, rows, member, project):
    first = api.get(URL, {"ordering": "name", "limit": 2})
    allocate(member, project, name="aa")
    assert names(first) + names(api.get(first.json()["next"])) == list("abcd")


def test_a_cursor_is_of_its_order_alone(api, rows):
    following = api.get(URL, {"ordering": "name", "limit": 2}).json()["next"]
    for other in ("ordering=-name", "ordering=offering"):
        answer = api.get(following.replace("ordering=name", other))
        assert (answer.status_code, list(answer.json()["errors"])) == (400, ["cursor"])


@pytest.mark.parametrize("ordering", ["phase", "-", "--name", "Name", "name,created_at", "project__slug"])
def test_another_order_is_refused_with_those_that_there_are(api, ordering):
    answer = api.get(URL, {"ordering": ordering})
    assert answer.status_code == 400
    assert "created_at, name, project, offering" in answer.json()["errors"]["ordering"][0]


def test_a_list_may_begin_after_a_time(api, rows):
    assert names(api.get(URL, {"created_after": rows[2].created_at.isoformat()})) == ["d", "b"]


@pytest.mark.parametrize("time", ["yesterday", "2026-11-30", "2026-W10-1T00:00:00Z"])
def test_a_time_that_is_none_is_refused(api, time):
    assert list(api.get(URL, {"created_after": time}).json()["errors"]) == ["created_after"]


def test_rows_have_the_fields_that_are_named_and_no_other(api, rows):
    answer = api.get(URL, {"fields": "name,phase", "limit": 2})
    assert answer.json()["results"][0] == {"name": "d", "phase": "queued"}
    assert [set(row) for row in api.get(answer.json()["next"]).json()["results"]] == [{"name", "phase"}] * 2


def test_events_have_the_fields_that_are_named_and_no_other(api, rows):
    path = f"{URL}/{api.get(URL).json()['results'][0]['id']}/events"
    found = api.get(path, {"fields": "type,actor"}).json()["results"]
    assert found
    assert {frozenset(row) for row in found} == {frozenset({"type", "actor"})}
    assert list(api.get(path, {"fields": "nope"}).json()["errors"]) == ["fields"]


@pytest.mark.parametrize("fields", ["nope", "name,nope", "queue.position"])
def test_a_field_that_rows_do_not_have_is_refused_with_those_they_have(api, fields):
    answer = api.get(URL, {"fields": fields})
    assert answer.status_code == 400
    assert "phase" in answer.json()["errors"]["fields"][0]


def is_list(route: URLPattern) -> bool:
    view = vars(route.callback)["cls"]
    schema = getattr(view, "kwargs", {}).get("schema")
    if schema is None or "<" in str(route.pattern):
        return False
    found = schema()
    found.view, found.method = view(), "GET"
    found.view.request = None
    return page_of(found.get_response_serializers()) is not None


@pytest.mark.parametrize("route", [route for route in v1 if is_list(route)], ids=lambda route: str(route.pattern))
def test_every_list_has_sparse_rows(route, rows):
    operator = client(person(platform_role="operator"))
    path = f"/api/v1/{route.pattern}"
    for row in operator.get(path).json()["results"]:
        name = next(iter(row))
        assert [set(found) for found in operator.get(path, {"fields": name, "limit": 1}).json()["results"]] == [{name}]
        break
    assert list(operator.get(path, {"fields": "nope"}).json()["errors"]) == ["fields"]
