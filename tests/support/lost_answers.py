"""Answers of the portal that do not come: lost on the way, or late, since the portal still works on the request."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from django.db import connection

from portal.core.locks import advisory_lock


@contextmanager
def withholding(url: str, *, connections: int = 1) -> Iterator[tuple[str, threading.Event]]:
    """Relay connections to the portal, but not the answers on the first ones. Yield the address, and an event that
    tells of the first answer.
    """
    port, answered = int(url.rpartition(":")[2]), threading.Event()

    def pump(source: socket.socket, target: socket.socket, *, is_answer: bool = False, withholds: bool = False) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not withholds:
                    target.sendall(data)
                if is_answer:
                    answered.set()
            target.shutdown(socket.SHUT_WR)

    def accept(opened: ExitStack, listener: socket.socket) -> None:
        left = connections
        with suppress(OSError):
            while True:
                client = opened.enter_context(listener.accept()[0])
                portal = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
                answers = {"is_answer": True, "withholds": left > 0}
                threading.Thread(target=pump, args=(client, portal), daemon=True).start()
                threading.Thread(target=pump, args=(portal, client), kwargs=answers, daemon=True).start()
                left -= 1

    with ExitStack() as opened:
        listener = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        threading.Thread(target=accept, args=(opened, listener), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", answered
        listener.shutdown(socket.SHUT_RDWR)  # ends the wait for the next connection


@contextmanager
def requests_kept_waiting(project: str) -> Iterator[Callable[[], bool]]:
    """Keep requests for allocations in a project waiting for a lock. Yield what tells whether one waits.

    The portal answers those that wait for longer than ten seconds with 503.
    """

    def is_one_waiting() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)")
            return bool(cursor.fetchone() == (True,))

    with advisory_lock("live", project):
        yield is_one_waiting
