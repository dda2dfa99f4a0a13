"""Clients that send or take nothing, in a real web process with four threads: everybody else is answered at once."""

import http.client
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders

from portal.server.worker import PIPELINED
from tests.support.impatient_worker import RECEIVE_S
from tests.support.web_process import web_process

pytestmark = pytest.mark.django_db(transaction=True)
CLIENTS = 200
MANY = 40
"""Were each to keep one of four threads for RECEIVE_S, the first answer after them would take 30 s."""
HEAD = b"POST /login HTTP/1.1\r\nHost: localhost\r\n"
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"
LARGE = "drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"
SLOW = {
    "silent": b"",
    "half a request line": b"POST /log",
    "half a head": HEAD,
    "half a body": HEAD + FORM + b"Content-Length: 100\r\n\r\nusername=",
    "half a chunk": HEAD + FORM + b"Transfer-Encoding: chunked\r\n\r\n64\r\nusername=",
    "half a trailer": HEAD + FORM + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-Trailer: a\r\n",
    "a large answer that nobody takes": f"GET /static/{LARGE} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(),
    "a refused body": HEAD + b"Content-Length: 99999999\r\n\r\n",
    "an answer after which nobody closes": b"GET /livez HTTP/1.0\r\n\r\n",
}


@pytest.fixture(scope="module")
def port(django_db_setup: None) -> Iterator[int]:
    with web_process("--worker-class=tests.support.impatient_worker.Worker") as port:
        yield port


@pytest.fixture
def connect(port) -> Iterator[Callable[..., socket.socket]]:
    """Yield a function that opens a connection, and sends some bytes; with a small buffer for what it gets."""
    with ExitStack() as sockets:

        def opened(sent: bytes) -> socket.socket:
            found = sockets.enter_context(socket.socket())
            found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            found.settimeout(30)
            found.connect(("127.0.0.1", port))
            found.sendall(sent)
            return found

        yield opened


def ask(port: int, path: str, headers: dict[str, str] | None = None) -> tuple[int, str | None, bytes]:
    """Return status, Location and body of an answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as wire:
        wire.request("GET", path, headers=headers or {})
        with wire.getresponse() as answer:
            return answer.status, answer.headers["Location"], answer.read()


def seconds(port: int) -> float:
    """Return how long one answer takes."""
    start = time.monotonic()
    assert ask(port, "/livez") == (200, None, b"ok")
    return time.monotonic() - start


@pytest.mark.parametrize("sent", SLOW.values(), ids=SLOW)
def test_two_hundred_slow_clients_keep_nobody_waiting(port, connect, sent):
    for _ in range(CLIENTS if LARGE.encode() not in sent else MANY):  # an answer is made first
        connect(sent)
    took = sorted(seconds(port) for _ in range(20))
    assert took[10] < 0.5
    assert took[-1] < MANY / 4 * RECEIVE_S / 2


def test_who_sends_a_byte_now_and_then_is_closed_after_the_time_for_a_request_all_the_same(connect):
    slow, start = connect(HEAD), time.monotonic()
    slow.settimeout(0.2)
    while time.monotonic() < start + 30:
        try:
            slow.send(b"X")
            if not slow.recv(1000):
                break
        except TimeoutError:
            continue
        except OSError:
            break
    assert RECEIVE_S - 0.1 < time.monotonic() - start < 30


def test_a_large_answer_arrives_whole_with_who_takes_it(port):
    assert ask(port, f"/static/{LARGE}")[2] == Path(str(finders.find(LARGE))).read_bytes()


def test_a_body_that_breaks_off_is_not_acted_on(connect):
    wire = connect(SLOW["half a body"])
    wire.shutdown(socket.SHUT_WR)
    assert wire.recv(1000) == b""


def test_requests_that_come_at_once_are_answered_one_after_the_other(connect):
    first, second = (f"GET /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in ("livez", "api/x"))
    wire = connect(first + second[:10])
    wire.sendall(second[10:] + b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    with wire.makefile("rb") as answers:
        found = answers.read()
    assert re.findall(rb"HTTP/1.1 (\d+)", found) == [b"200", b"404", b"200"]


def test_of_more_requests_at_once_the_first_are_answered_and_the_connection_is_closed(connect):
    with connect(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10).makefile("rb") as answers:
        found = answers.read()
    assert re.findall(rb"HTTP/1.1 (\d+)", found) == [b"200"] * PIPELINED
    assert found.count(b"Connection: close") == 1


def test_nothing_behind_a_refused_body_is_taken_for_a_request(connect):
    wire = connect(SLOW["a refused body"] + b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
    with wire.makefile("rb") as answers:
        found = answers.read()
    assert found.count(b"HTTP/1.1") == 1
    assert found.startswith(b"HTTP/1.1 413")
    assert b"Connection: close" in found


def test_who_waits_to_be_told_to_continue_is_told(connect):
    wire = connect(HEAD + FORM + b"Expect: 100-continue\r\nContent-Length: 10\r\n\r\n")
    assert wire.recv(1000).startswith(b"HTTP/1.1 100 Continue")


def test_a_head_without_end_is_refused(connect):
    wire = connect(HEAD)
    try:
        wire.sendall(b"X-A: b\r\n" * 20_000)
        assert wire.recv(1000).startswith(b"HTTP/1.0 431")
    except ConnectionError:
        pytest.skip("the answer was lost with the connection")


def test_a_request_line_that_is_too_long_is_400(port):
    assert [ask(port, f"/livez?{'x' * size}")[0] for size in (4000, 5000)] == [200, 400]


SPOOFED = {
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Protocol": "ssl",
    "X-Forwarded-Ssl": "on",
    "SCRIPT_NAME": "/api",
    "PATH_INFO": "/livez",
}


@pytest.mark.parametrize("header", SPOOFED)
def test_without_trusted_proxies_no_header_of_a_neighbour_changes_address_or_scheme(port, header):
    path = "/api/docs"  # tells the address of the schema
    assert ask(port, path, {header: SPOOFED[header]}) == ask(port, path)


def test_with_one_trusted_proxy_its_word_on_the_scheme_counts_and_that_on_the_path_does_not(monkeypatch):
    monkeypatch.setenv("TRUSTED_PROXIES", "1")
    monkeypatch.setenv("HTTPS", "1")
    with web_process() as port:

        def status(**headers: str) -> int:
            return ask(port, "/login", {name.replace("_", "-"): value for name, value in headers.items()})[0]

        assert status() == 301
        assert status(X_Forwarded_Proto="https") == 200
        assert status(X_Forwarded_Proto="http", X_Forwarded_Ssl="on") == 301
        assert ask(port, "/login", {"X-Forwarded-Proto": "https", "SCRIPT_NAME": "/login"})[0] == 200
