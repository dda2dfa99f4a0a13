"""Chunked bodies sent to a real web server: their content counts, and broken ones change nothing."""

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator
from datetime import timedelta
from itertools import repeat
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from portal.tenants import services
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Scope
from tests.support.people import person
from tests.support.web_process import web_process

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/api/v1/projects/vision-train"
CLOSED = (BrokenPipeError, ConnectionResetError)


@pytest.fixture(scope="module")
def server(django_db_setup: None) -> Iterator[int]:
    with web_process() as port:
        yield port


@pytest.fixture
def headers(team) -> dict[str, str]:
    _, secret = services.issue_token(SYSTEM, person(team, "lead"), "test", Scope.values, timedelta(days=1))
    return {"Authorization": f"Bearer {secret}", "Content-Type": "application/json", "If-Match": "*"}


def put(port: int, headers: dict[str, str], body: Any) -> tuple[int, dict[str, Any]]:
    """Return the answer to a chunked body, which may arrive before the server has read all of it."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as wire:
        with contextlib.suppress(*CLOSED):
            wire.request("PUT", PATH, body, headers, encode_chunked=True)
        with wire.getresponse() as answer:
            return answer.status, json.loads(answer.read())


def raw(port: int, headers: dict[str, str], body: bytes, **more: str) -> int | None:
    """Return the status of the answer to these bytes, None if there is none; the client sends nothing after them."""
    lines = [f"PUT {PATH} HTTP/1.1", "Host: 127.0.0.1", *(f"{name}: {value}" for name, value in headers.items())]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in more.items()]
    with socket.create_connection(("127.0.0.1", port), timeout=30) as wire:
        wire.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        wire.shutdown(socket.SHUT_WR)
        with wire.makefile("rb") as answer:
            found = answer.readline().split()
            return int(found[1]) if found else None


def test_what_is_in_chunks_counts_as_if_it_were_sent_whole(server, headers, project):
    status, answer = put(server, headers, iter([b'{"na', b'me": "In ', b'chunks"}']))
    assert (status, answer["name"]) == (200, "In chunks")
    project.refresh_from_db()
    assert project.name == "In chunks"


def test_a_field_that_is_wrong_is_refused_in_chunks_too(server, headers, project):
    status, answer = put(server, headers, iter([b'{"nam', b'es": "x"}']))
    assert (status, list(answer["errors"])) == (400, ["names"])


def test_a_body_above_the_limit_is_413_and_changes_nothing(server, headers, project):
    blocks = [b'{"name": "Changed", "x": "', *repeat(b"x" * 2**16, settings.BODY_LIMIT_BYTES // 2**16), b'"}']
    status, answer = put(server, headers, iter(blocks))
    assert (status, answer["reason"], answer["status"]) == (413, "too_large", 413)
    project.refresh_from_db()
    assert project.name == "Vision training"


def test_a_body_of_just_the_limit_is_read(server, headers, project):
    body = b'{"name": "Full"}'
    assert put(server, headers, iter([body, b" " * (settings.BODY_LIMIT_BYTES - len(body))]))[0] == 200


def test_chunks_that_are_broken_are_400_and_change_nothing(server, headers, project):
    assert raw(server, headers, b"zz\r\n{}\r\n0\r\n\r\n", Transfer_Encoding="chunked") == 400
    project.refresh_from_db()
    assert project.name == "Vision training"


@pytest.mark.parametrize(
    "body", [b'10\r\n{"name": "Cut"}', b'f\r\n{"name": "Cut"}\r\n', b'f\r\n{"name": "Cut"}\r\n0\r\n']
)
def test_chunks_that_break_off_change_nothing(server, headers, project, body):
    assert raw(server, headers, body, Transfer_Encoding="chunked") is None
    project.refresh_from_db()
    assert project.name == "Vision training"


def test_a_length_beside_chunks_is_400(server, headers, project):
    body = b'10\r\n{"name": "Both"}\r\n0\r\n\r\n'
    assert raw(server, headers, body, Transfer_Encoding="chunked", Content_Length=str(len(body))) == 400


@pytest.mark.parametrize(
    ("sent", "status", "reason"),
    [({}, 411, "length_required"), ({"CONTENT_LENGTH": "2"}, 400, "malformed")],
)
def test_a_server_that_hands_chunks_on_without_their_end_is_told_so(sent, status, reason):
    answer = Client().generic("POST", "/api/v1/tokens", "", HTTP_TRANSFER_ENCODING="chunked", **sent)
    assert (answer.status_code, answer.json()["reason"]) == (status, reason)
    assert answer["Content-Type"] == "application/problem+json"
