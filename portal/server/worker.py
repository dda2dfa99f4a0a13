"""A gunicorn worker whose threads wait for no client: waitress receives requests and sends answers in one loop.

Gunicorn's own threaded worker reads requests and writes answers in its threads, so as many connections as it has
threads keep everybody out by sending or taking nothing. With waitress a thread gets a request that has arrived whole,
and leaves its answer behind. Here it also gets deadlines: waitress alone waits as long as a byte comes now and then.
"""

import select
import time
from typing import Any

from django.conf import settings
from gunicorn.errors import ConfigError
from gunicorn.workers.base import Worker as GunicornWorker
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher

RECEIVE_S = 20.0
"""For a whole request: a megabyte by a slow mobile line."""
SEND_S = 60.0
"""For the client to take something of its answer."""
LINE_BYTES = 4094
HEAD_BYTES = 32 * 1024
"""Request line and header fields."""
BODIES = 4
"""A body is received up to so many times the portal's own limit, so that the portal says what the limit is."""
LEFT_BYTES = 16 * 1024 * 1024
"""How much of an answer may be left behind; a longer export keeps its thread, for `SEND_S` at most."""
ROOM = 0.9
"""The part of all connections that may stay open, so that there is room for new ones."""
PIPELINED = 3
"""Requests of a connection that are received before the first is answered. Their answers together stay below
`LEFT_BYTES`, or a client that takes none of them would keep a thread.
"""
LOOK_S = 1
LAST_S = 0.2
"""For the requests of connections that were accepted last to arrive."""


def adjustments(**options: Any) -> Adjustments:
    """Return waitress' settings, and whether each answer is to end its connection (`ends_connections`)."""
    found = Adjustments(
        cleanup_interval=LOOK_S,
        clear_untrusted_proxy_headers=False,  # `TRUSTED_PROXIES` decides what counts
        ident=None,
        max_request_body_size=BODIES * settings.BODY_LIMIT_BYTES,
        max_request_header_size=HEAD_BYTES,
        outbuf_high_watermark=LEFT_BYTES,
        **options,
    )
    found.ends_connections = False
    return found


class Parser(HTTPRequestParser):
    """A request as it arrives."""

    def parse_header(self, header_plus: bytes) -> None:
        """Raise ParsingError too for a long request line, and for two lengths, of which a proxy may have believed the
        other one.
        """
        if header_plus.find(b"\r\n") > LINE_BYTES:
            raise ParsingError(f"The request line is longer than {LINE_BYTES} bytes")
        super().parse_header(header_plus)
        if self.adj.ends_connections:
            self.headers["CONNECTION"] = "close"  # as if it had been sent
        if self.chunked and "CONTENT_LENGTH" in self.headers:
            raise ParsingError("Content-Length beside Transfer-Encoding")


class Channel(HTTPChannel):
    """A connection. ``began`` is when the request that is being received began, in seconds since the epoch."""

    parser_class = Parser
    began = 0.0

    def received(self, data: bytes) -> bool:
        """Receive requests. Of too many at once the connection is closed after those that are answered; their sender
        repeats the others (RFC 9112 §9.3.2).
        """
        if self.request is None:
            self.began = time.time()
        is_taken = bool(super().received(data))
        with self.requests_lock:
            if len(self.requests) > PIPELINED:
                self.requests[PIPELINED - 1].headers |= {"CONNECTION": "close"}  # as if it had been sent
                for each in self.requests[PIPELINED:]:
                    each.close()
                del self.requests[PIPELINED:]
        return is_taken

    def is_late(self, now: float) -> bool:
        """Return whether the client has sent its request, or taken its answer, too slowly."""
        if self.request is not None:
            return self.began < now - RECEIVE_S
        return bool(self.total_outbufs_len) and self.last_activity < now - SEND_S


class Server(TcpWSGIServer):
    """A listening socket and its connections."""

    channel_class = Channel

    @property
    def is_busy(self) -> bool:
        """Whether a request is being received or answered."""
        channels = self.active_channels.values()
        return any(each.request or each.requests or each.total_outbufs_len for each in channels)

    def take_last(self) -> None:
        """Accept the connections that wait, and listen no more: then others are refused, and go to another process."""
        while select.select([self.socket], [], [], 0)[0]:
            self.handle_accept()
        wasyncore.dispatcher.close(self)  # its own `close` would end its connections too

    def maintenance(self, now: float) -> None:
        """Close the connections whose time is over, and of too many those that nothing was heard of for longest."""
        super().maintenance(now)
        channels = sorted(self.active_channels.values(), key=lambda channel: channel.last_activity)
        late = [channel for channel in channels if channel.is_late(now)]
        waiting = [channel for channel in channels if not channel.requests]
        excess = max(0, len(channels) - int(ROOM * self.adj.connection_limit))
        for channel in {*late, *waiting[:excess]}:
            channel.handle_close()


class Worker(GunicornWorker):
    """Serves gunicorn's listening sockets until it is told to stop, and then loses no request.

    For `DRAIN_S` it answers what still arrives, since load balancers learn late that it stops; each answer ends its
    connection. Then it takes no more connections, and finishes the requests that have begun.
    """

    @classmethod
    def check_config(cls, cfg: Any, _log: Any) -> None:
        if cfg.is_ssl:
            raise ConfigError("This worker speaks plain HTTP. End TLS at a proxy.")

    def run(self) -> None:
        connections: dict[int, Any] = {}
        threads = ThreadedTaskDispatcher()
        threads.set_thread_count(self.cfg.threads)
        servers = [self._server(listener.sock, connections, threads) for listener in self.sockets]
        while self.alive:
            self._look(connections)
        self._drain(servers, connections)
        threads.shutdown()

    def _drain(self, servers: list[Server], connections: dict[int, Any]) -> None:
        began = time.monotonic()
        for server in servers:
            server.adj.ends_connections = True
        while time.monotonic() < began + settings.DRAIN_S:
            self._look(connections)
        for server in servers:
            server.take_last()
        received_until = time.monotonic() + LAST_S
        while time.monotonic() < began + self.cfg.graceful_timeout:
            if time.monotonic() > received_until and not any(server.is_busy for server in servers):
                return
            self._look(connections, LAST_S)

    def _server(self, sock: Any, connections: dict[int, Any], threads: ThreadedTaskDispatcher) -> Server:
        chosen = adjustments(
            sockets=[sock], channel_timeout=self.cfg.keepalive, connection_limit=self.cfg.worker_connections
        )
        info = (sock.family, sock.type, sock.proto, sock.getsockname())
        return Server(
            self.wsgi, connections, _sock=sock, dispatcher=threads, adj=chosen, sockinfo=info, bind_socket=False
        )

    def _look(self, connections: dict[int, Any], timeout_s: float = LOOK_S) -> None:
        self.notify()
        wasyncore.loop(timeout=timeout_s, use_poll=True, map=connections, count=1)
