"""Connections into and out of the network namespaces of containers, by programs of this machine alone.

A socket belongs to the namespace that its thread was in when it was made, and works from everywhere afterwards. So a
namespace that has nothing but its own loopback needs neither bridge nor rules: what it listens on is reached by sockets
made in it, and what it asks for is answered by listening sockets made in it.
"""

import ctypes
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

CLONE_NEWNET = 0x40000000
CHUNK = 64 * 1024
Address = tuple[str, int]


def in_namespace(pid: int, make: Callable[[], socket.socket]) -> socket.socket:
    """Return the socket that ``make`` returns in the network namespace of a process; raise what it raises."""
    future: Future[socket.socket] = Future()

    def run() -> None:
        try:
            with Path(f"/proc/{pid}/ns/net").open("rb") as file:
                if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            future.set_result(make())
        except OSError as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future.result()


def connect(pid: int, port: int) -> socket.socket:
    """Return a connection to a port on the loopback of a process' network namespace."""
    return in_namespace(pid, lambda: socket.create_connection(("127.0.0.1", port), timeout=30))


def listen(pid: int, port: int) -> socket.socket:
    """Return a socket that listens on a port of the loopback of a process' network namespace."""
    return in_namespace(pid, lambda: socket.create_server(("127.0.0.1", port), backlog=128))


def forward(listening: socket.socket, dial: Callable[[], socket.socket]) -> None:
    """Hand each connection of a listening socket to one that ``dial`` makes, until the socket is closed."""

    def serve() -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=_join, args=(client, dial), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()


def _join(client: socket.socket, dial: Callable[[], socket.socket]) -> None:
    try:
        server = dial()
    except OSError:
        client.close()
        return
    for one in (client, server):
        one.settimeout(None)
    back = threading.Thread(target=_pump, args=(server, client), daemon=True)
    back.start()
    _pump(client, server)
    back.join()
    client.close()
    server.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Copy until the source ends, then end the target's direction only: the other one may go on."""
    try:
        while data := source.recv(CHUNK):
            target.sendall(data)
    except OSError:
        pass
    try:
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return
