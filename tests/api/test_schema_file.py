"""The schema is made once, and answered like a file: with an entity tag, compressed, and by nobody anew."""

import gzip
import time

import pytest
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from portal.api.views import schema

pytestmark = pytest.mark.django_db
URL = "/api/v1/schema"


def get(**headers):
    return APIClient().get(URL, headers={name.replace("_", "-"): value for name, value in headers.items()})


def test_it_is_made_once_whoever_asks_in_whatever_way(monkeypatch):
    made = []
    whole = SchemaGenerator.get_schema

    def noted(*args, **more):
        made.append(1)
        return whole(*args, **more)

    monkeypatch.setattr(SchemaGenerator, "get_schema", noted)
    schema._text.cache_clear()
    schema._file.cache_clear()
    for query in ("", "?version=2", "?lang=de"):
        assert APIClient().get(f"{URL}{query}").status_code == 200
    assert made == [1]


def test_who_has_it_is_told_so():
    first = get()
    again = get(If_None_Match=f'"other", {first["ETag"]}')
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    assert first["Cache-Control"] == again["Cache-Control"] == "public, no-cache"
    assert get(If_None_Match='"other"').status_code == 200


def test_each_form_of_it_has_its_own_tag():
    plain, packed = get(), get(Accept_Encoding="gzip")
    yaml = get(Accept="application/vnd.oai.openapi")
    assert packed["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.content) == plain.content
    assert b"openapi: 3.1.0" in yaml.content
    assert len({answer["ETag"] for answer in (plain, packed, yaml)}) == 3
    assert {"Accept", "Accept-Encoding"} <= {name.strip() for name in plain["Vary"].split(",")}


def test_answering_it_takes_little():
    get()
    start = time.thread_time()
    for _ in range(10):
        get()
    assert time.thread_time() - start < 1.0
