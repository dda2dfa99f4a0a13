"""Many requests of one connection at once: their answers keep no thread, whoever takes them."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from waitress import wasyncore
from waitress.task import ThreadedTaskDispatcher

from portal.server.worker import LEFT_BYTES, Server, adjustments

THREADS = 2
LARGE = LEFT_BYTES // 8


def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    body = b"x" * (LARGE if environ["PATH_INFO"] == "/large" else 2)
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    """Yield where a server of few threads listens."""
    listening, connections, threads = socket.create_server(("127.0.0.1", 0)), dict[int, Any](), ThreadedTaskDispatcher()
    threads.set_thread_count(THREADS)
    info = (listening.family, listening.type, listening.proto, listening.getsockname())
    options = {"dispatcher": threads, "adj": adjustments(sockets=[listening]), "sockinfo": info, "bind_socket": False}
    Server(application, connections, _sock=listening, **options)
    is_over = threading.Event()

    def serve() -> None:
        while not is_over.is_set():
            wasyncore.loop(timeout=0.1, use_poll=True, map=connections, count=1)

    serving = threading.Thread(target=serve)
    serving.start()
    yield listening.getsockname()
    is_over.set()
    serving.join()
    for each in list(connections.values()):
        each.handle_close()
    threads.shutdown()


def test_large_answers_to_requests_at_once_that_nobody_takes_keep_no_thread(address: tuple[str, int]) -> None:
    with ExitStack() as sockets:
        for _ in range(2 * THREADS):
            slow = sockets.enter_context(socket.create_connection(address))
            slow.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
            assert slow.recv(10)
        for _ in range(10 * THREADS):
            with socket.create_connection(address, timeout=10) as wire:
                wire.sendall(b"GET / HTTP/1.0\r\n\r\n")
                assert wire.recv(1000).startswith(b"HTTP/1.0 200")
