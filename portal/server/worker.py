"""A gunicorn worker whose threads wait for no client: they get requests that have arrived, and leave answers behind.

Gunicorn's own threaded worker reads requests and writes answers in its threads, so as many connections as it has
threads keep everybody out by sending or taking nothing. Here the loop that accepts connections also receives requests
and sends what clients did not take at once, as nginx does in front of an application. A client has `RECEIVE_S` for a
request and `SEND_S` for an answer; clients that are waited for hold `HELD_BYTES` at most, and as many connections as
there may be, before the one that holds most or came first is closed.
"""

import errno
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.conf import settings
from gunicorn import http
from gunicorn.errors import ConfigError
from gunicorn.workers.gthread import TConn, ThreadWorker

from portal.server.arrival import Arrival

RECEIVE_S = 20.0
"""For a whole request: a megabyte by a slow mobile line."""
SEND_S = 60.0
"""For what is left of an answer."""
BLOCK_S = 20.0
"""For a part of a streamed answer, which keeps its thread: then the export is broken off."""
LINGER_S = 2.0
"""For the answer to a refused body to be read, before the connection is reset (RFC 9112 §9.6)."""
LEFT_BYTES = 2 * 1024 * 1024
"""How much of an answer is left to the loop: any page, and the largest script."""
HELD_BYTES = 64 * 1024 * 1024
BLOCK_BYTES = 64 * 1024
TOO_LATE = "408 Request Timeout"
TOO_LONG = "431 Request Header Fields Too Large"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Outlet:
    """A socket that never blocks its reader, and its writer only above `LEFT_BYTES`."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock, self.left = sock, bytearray()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def setblocking(self, is_blocking: bool) -> None:
        """Do nothing: gunicorn's threads ask for blocking sockets."""

    def settimeout(self, seconds: float | None) -> None:
        """Do nothing, as `setblocking`."""

    def gettimeout(self) -> float:
        return 0.0

    def send(self, data: bytes) -> int:
        self.sendall(data)
        return len(data)

    def sendall(self, data: bytes) -> None:
        """Send, or keep for the loop. Raises BrokenPipeError for a client that takes a large answer too slowly."""
        is_free = not self.left
        self.left += data
        if is_free:
            self.flush()
        deadline = time.monotonic() + BLOCK_S
        while len(self.left) > LEFT_BYTES:
            with selectors.DefaultSelector() as selector:
                selector.register(self._sock, selectors.EVENT_WRITE)
                if not selector.select(deadline - time.monotonic()):
                    self.left.clear()
                    raise BrokenPipeError(errno.EPIPE, "The client does not take its answer.")
            self.flush()

    def flush(self) -> None:
        """Send what can be sent now."""
        with suppress(BlockingIOError):
            while self.left:
                del self.left[: self._sock.send(self.left[:BLOCK_BYTES])]


@dataclass
class Wait:
    """What the loop waits for on a connection, and until when."""

    until: float
    too_late: Callable[[], None]


class Worker(ThreadWorker):
    """Runs in the main thread, but for `handle` and what it calls."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.waits: dict[Any, Wait] = {}
        self.looked_at = 0.0

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        super().check_config(cfg, log)
        if cfg.is_ssl:
            raise ConfigError("This worker speaks plain HTTP. End TLS at a proxy.")
        cfg.set("sendfile", False)  # an `Outlet` takes bytes

    def accept(self, listener: Any) -> None:
        try:
            sock, client = listener.accept()
        except OSError as error:  # taken by another worker, or gone again
            self.log.debug("accept: %s", error)
            return
        self.nr_conns += 1
        if self.nr_conns >= self.worker_connections:
            self._make_room()
        self.enqueue_req(TConn(self.cfg, Outlet(sock), client, listener.getsockname()))

    def enqueue_req(self, conn: Any) -> None:
        """Receive a request, and have a thread handle it once it is there."""
        rest = conn.arrival.rest if conn.initialized else b""
        conn.arrival = Arrival(settings.BODY_LIMIT_BYTES)
        conn.arrival.add(rest)
        self._receive(conn)

    def finish_request(self, conn: Any, result: Future[Any]) -> None:
        """Send what is left of the answer, then go on with the next request or close."""
        if conn.sock.left and not result.cancelled() and result.exception() is None:
            self._wait(conn, selectors.EVENT_WRITE, partial(self._send, result), SEND_S, partial(self._drop, conn))
            self._bound(conn)
        elif conn.arrival.is_cut:
            self._linger(conn)
        elif conn.arrival.rest and not result.cancelled() and result.exception() is None and result.result():
            self.enqueue_req(conn)
        else:
            conn.arrival.received.clear()
            super().finish_request(conn, result)

    def murder_pending(self) -> None:
        """Close the connections whose time is over; of a worker that stops, those that have sent nothing."""
        now = time.monotonic()
        if self.alive and now < self.looked_at + 1:
            return
        self.looked_at = now
        for conn, wait in list(self.waits.items()):
            if wait.until <= now or not (self.alive or conn.arrival.received):
                wait.too_late()

    def handle_request(self, req: Any, conn: Any) -> bool:
        """Answer; in a thread."""
        if conn.arrival.is_cut:
            req.force_close()
        return bool(super().handle_request(req, conn))

    def _receive(self, conn: Any) -> None:
        arrival = conn.arrival
        while not arrival.is_whole:
            try:
                data = conn.sock.recv(BLOCK_BYTES)
            except BlockingIOError:
                if conn not in self.waits:
                    refuse = partial(self._refuse, conn, TOO_LATE)
                    self._wait(conn, selectors.EVENT_READ, self._receive, RECEIVE_S, refuse)
                self._bound(conn)
                return
            except OSError:
                data = b""
            if not data and not arrival.is_chunked:
                self._drop(conn)  # what has no end is not acted on; chunks without one are told so
                return
            arrival.add(data)
            if not data:
                arrival.cut()
            elif arrival.expects_continue and not arrival.is_whole:
                arrival.expects_continue = False
                conn.sock.sendall(CONTINUE)
        if not arrival.has_head:
            self._refuse(conn, TOO_LONG)
            return
        self._end_wait(conn)
        conn.parser = http.get_parser(self.cfg, _blocks(arrival.request), conn.client)
        conn.initialized = conn.data_ready = True
        super().enqueue_req(conn)

    def _send(self, result: Future[Any], conn: Any) -> None:
        try:
            conn.sock.flush()
        except OSError:
            self._drop(conn)
            return
        if not conn.sock.left:
            self._end_wait(conn)
            self.finish_request(conn, result)

    def _linger(self, conn: Any) -> None:
        """Close, once the client has read the answer to what it still sends."""
        with suppress(OSError):
            conn.sock.shutdown(socket.SHUT_WR)
        self._wait(conn, selectors.EVENT_READ, self._discard, LINGER_S, partial(self._drop, conn))

    def _discard(self, conn: Any) -> None:
        try:
            is_open = bool(conn.sock.recv(BLOCK_BYTES))
        except BlockingIOError:
            is_open = True
        except OSError:
            is_open = False
        if not is_open:
            self._drop(conn)

    def _refuse(self, conn: Any, status: str) -> None:
        """Close a connection whose request did not arrive."""
        if conn.arrival.received:
            with suppress(OSError):
                conn.sock.sendall(f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode())
        self._drop(conn)

    def _make_room(self) -> None:
        """Close the connection that is waited for, or idle, for longest."""
        if self.waits:
            next(iter(self.waits.values())).too_late()
        elif self.keepalived_conns:
            idle = self.keepalived_conns.popleft()
            self.poller.unregister(idle.sock)
            self._drop(idle)

    def _bound(self, conn: Any) -> None:
        """Close the connection that holds most, if all hold too much."""
        if _held(conn) < BLOCK_BYTES or sum(map(_held, self.waits)) < HELD_BYTES:
            return
        self.waits[max(self.waits, key=_held)].too_late()

    def _wait(
        self, conn: Any, event: int, ready: Callable[[Any], None], seconds: float, too_late: Callable[[], None]
    ) -> None:
        self._end_wait(conn)
        self.waits[conn] = Wait(time.monotonic() + seconds, too_late)
        self.poller.register(conn.sock, event, lambda _sock: ready(conn))

    def _end_wait(self, conn: Any) -> None:
        if self.waits.pop(conn, None):
            self.poller.unregister(conn.sock)

    def _drop(self, conn: Any) -> None:
        self._end_wait(conn)
        self.nr_conns -= 1
        conn.close()


def _held(conn: Any) -> int:
    return len(conn.arrival.received) + len(conn.sock.left)


def _blocks(request: bytes) -> Iterator[bytes]:
    """Yield the request as a socket would."""
    for begin in range(0, len(request), BLOCK_BYTES // 8):
        yield request[begin : begin + BLOCK_BYTES // 8]
