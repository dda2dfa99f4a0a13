"""Columns of tables: what the address may sort by, and what the heads say."""

from types import SimpleNamespace

import pytest
from django.test import RequestFactory

from frontend.tables import Column, sorting

COLUMNS = [
    Column("name", "Name", "name"),
    Column("cost", "Cost", "cost", is_number=True),
    Column("actions", "Actions"),
]
ROWS = [SimpleNamespace(name=name, cost=cost) for name, cost in (("b", 2), ("a", None), ("c", 1))]


def of(sort: str, default: str = ""):
    return sorting(RequestFactory().get("/", {"sort": sort}), COLUMNS, default)


@pytest.mark.parametrize(
    ("sort", "names"), [("", "bac"), ("name", "abc"), ("-name", "cba"), ("cost", "cba"), ("-cost", "bca")]
)
def test_rows_are_in_the_order_of_the_address_and_what_is_not_known_is_last(sort, names):
    assert "".join(row.name for row in of(sort).rows(ROWS)) == names


@pytest.mark.parametrize("sort", ["secret", "actions", "--name", "name,cost", "-"])
def test_what_no_column_sorts_by_is_the_default(sort):
    assert of(sort, "-cost").rows(ROWS) == of("-cost").rows(ROWS)


def test_a_head_sorts_by_its_column_and_by_the_other_direction_the_second_time():
    found = [(head.url, head.direction) for head in of("-cost").heads]
    assert found == [
        ("?sort=name", ""),
        ("?sort=cost", "descending"),
        ("", ""),
    ]
    assert of("cost").heads[1].url == "?sort=-cost"


def test_figures_begin_with_the_highest():
    assert of("").heads[1].url == "?sort=-cost"


def test_a_head_keeps_the_filters_and_begins_at_the_first_page():
    found = sorting(RequestFactory().get("/?q=ada&page=3&v=1&costs=2"), COLUMNS, parameter="order")
    assert found.heads[0].url == "?q=ada&costs=2&order=name"
