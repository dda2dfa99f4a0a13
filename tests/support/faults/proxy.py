"""A TCP proxy on 127.0.0.1 that can leave connections half-open, like a firewall that drops their state."""

import contextlib
import socket
import threading


class Proxy:
    """Forwards to ``port`` until ``cut``: afterwards nothing passes on existing connections in either direction, and
    none is closed. New connections work.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._open: list[tuple[socket.socket, threading.Event]] = []
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def cut(self) -> int:
        """Make existing connections half-open; return how many there are."""
        for _, dead in self._open:
            dead.set()
        return len(self._open) // 2

    def close(self) -> None:
        for end in (self._server, *(end for end, _ in self._open)):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._server.accept()[0]
                server = socket.create_connection(("127.0.0.1", self._target), timeout=5)
                server.settimeout(None)
                dead = threading.Event()
                for one, other in ((client, server), (server, client)):
                    self._open.append((one, dead))
                    threading.Thread(target=self._forward, args=(one, other, dead), daemon=True).start()

    @staticmethod
    def _forward(source: socket.socket, target: socket.socket, dead: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not dead.is_set():
                    target.sendall(data)
            if not dead.is_set():
                target.shutdown(socket.SHUT_WR)
