"""Answers tell what is left of the limit on requests, and are compressed where that gives nothing away."""

import gzip
import json

import brotli
import pytest
from django.test import Client
from whitenoise.storage import CompressedManifestStaticFilesStorage

from portal.http import counters
from portal.http.compression import MIN_BYTES, preferred
from tests.support.fleet import fleet
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
LIMIT, REMAINING = "RateLimit-Limit", "RateLimit-Remaining"


@pytest.fixture(autouse=True)
def one_minute(monkeypatch):
    monkeypatch.setattr(counters, "_paused_until", 0.0)
    monkeypatch.setattr("portal.http.counters.time.time", lambda: 1_000_000_007.0)


@pytest.fixture
def member(team, other_team, project):
    fleet(team, other_team)
    return person(team)


def test_answers_tell_how_many_requests_are_left(settings, member):
    settings.API_REQUESTS_PER_MINUTE = 2
    api = client(member)
    answers = [api.get("/api/v1/me") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [(answer[LIMIT], answer[REMAINING]) for answer in answers] == [("2", "1"), ("2", "0"), ("2", "0")]
    assert {answer["RateLimit-Reset"] for answer in answers} == {"13"}
    assert {answer["RateLimit-Policy"] for answer in answers} == {"2;w=60"}


def test_refused_requests_tell_it_too_and_pages_do_not(member):
    assert client(member).get("/api/v1/allocations/x")[REMAINING] == "599"
    browser = Client()
    browser.force_login(member)
    assert not browser.get("/").has_header(LIMIT)


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, deflate, br", "br"),
        ("gzip", "gzip"),
        ("br;q=0.5, gzip;q=0.9", "gzip"),
        ("br;q=0, gzip;q=0", ""),
        ("*", "br"),
        ("*;q=0.1, br;q=0", "gzip"),
        ("identity", ""),
        ("", ""),
        ("gzip;q=x", ""),
    ],
)
def test_the_encoding_that_is_wanted_most_is_taken(accepted, encoding):
    assert preferred(accepted) == encoding


@pytest.mark.parametrize(("encoding", "read"), [("br", brotli.decompress), ("gzip", gzip.decompress)])
def test_an_answer_to_a_token_is_compressed(member, encoding, read):
    api = client(member)
    plain = api.get("/api/v1/offerings")
    answer = api.get("/api/v1/offerings", headers={"Accept-Encoding": encoding})
    assert answer["Content-Encoding"] == encoding
    assert "Accept-Encoding" in answer["Vary"]
    assert len(answer.content) == int(answer["Content-Length"]) < len(plain.content)
    assert json.loads(read(answer.content)) == plain.json()
    assert not plain.has_header("Content-Encoding")


@pytest.mark.parametrize(("encoding", "read"), [("br", brotli.decompress), ("gzip", gzip.decompress)])
def test_a_streamed_answer_is_compressed(encoding, read, member):
    operator = client(person(platform_role="operator"))
    plain = b"".join(operator.get("/api/v1/audit/export?action=project").streaming_content)  # type: ignore[attr-defined]
    answer = operator.get("/api/v1/audit/export?action=project", headers={"Accept-Encoding": encoding})
    assert answer["Content-Encoding"] == encoding
    assert read(b"".join(answer.streaming_content)) == plain  # type: ignore[attr-defined]


def test_nothing_that_a_browser_asks_for_by_cookie_is_compressed(member):
    browser = Client(headers={"Accept-Encoding": "gzip, br"})
    browser.force_login(member)
    for path in ("/", "/allocations", "/api/v1/offerings", "/api/docs"):
        answer = browser.get(path)
        assert answer.status_code == 200
        assert not answer.has_header("Content-Encoding")


def test_a_page_is_not_compressed_for_a_token_either(member):
    answer = client(member).get("/api/docs", headers={"Accept-Encoding": "gzip, br", "Accept": "text/html"})
    assert (answer.status_code, answer["Content-Type"].partition(";")[0]) == (200, "text/html")
    assert len(answer.content) >= MIN_BYTES
    assert not answer.has_header("Content-Encoding")


def test_an_answer_with_an_entity_tag_stays_as_it_is(member):
    answer = client(member).get("/api/v1/projects/vision-train", headers={"Accept-Encoding": "gzip"})
    assert answer["ETag"]
    assert not answer.has_header("Content-Encoding")


def test_static_files_are_kept_as_brotli_and_gzip_beside_themselves(tmp_path):
    (tmp_path / "app.css").write_text("a { color: black }\n" * 500)
    storage = CompressedManifestStaticFilesStorage(location=tmp_path, base_url="/static/")
    assert {name for _, name in storage.compress_files(["app.css"])} == {"app.css.br", "app.css.gz"}


@pytest.mark.parametrize(
    "path", ["/api/v1/me", "/api/v1/allocations", "/api/v1/allocations/x", "/api/nothing", "/login"]
)
@pytest.mark.parametrize("method", ["get", "post", "delete", "options"])
def test_no_cache_keeps_an_answer_that_does_not_say_so_itself(member, method, path):
    for api in (client(member), Client()):
        kept = getattr(api, method)(path)["Cache-Control"]
        assert "private" in kept
        assert "no-store" in kept or "no-cache" in kept
