"""The control socket of a home: one JSON object per line and connection, `{"do": ..., ...}` → `{"ok": ...}`.

The socket is opened through a descriptor of the home folder, since its full path may exceed the 107 bytes of a socket
address.
"""

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deploy.local.errors import LocalError

NAME = "control.sock"
TIMEOUT_S = 60.0


class NotRunning(LocalError):
    """No supervisor responds for this home."""


def listen(root: Path) -> socket.socket:
    (root / NAME).unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX)
    with _short(root) as address:
        server.bind(address)
    (root / NAME).chmod(0o600)
    server.listen()
    return server


def ask(root: Path, do: str, **arguments: Any) -> Any:
    """Return the supervisor's answer; raise NotRunning, or LocalError with the supervisor's message."""
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as client:
        client.settimeout(TIMEOUT_S)
        try:
            with _short(root) as address:
                client.connect(address)
            client.sendall(json.dumps({"do": do, **arguments}).encode() + b"\n")
            answer = json.loads(receive_line(client))
        except (OSError, ValueError) as error:
            raise NotRunning(f"no local cluster runs in {root}: {error}") from error
    if "error" in answer:
        raise LocalError(answer["error"])
    return answer["ok"]


def receive_line(connection: socket.socket) -> bytes:
    received = b""
    while not received.endswith(b"\n") and (part := connection.recv(65536)):
        received += part
    return received


@contextlib.contextmanager
def _short(root: Path) -> Iterator[str]:
    descriptor = os.open(root, os.O_PATH)
    try:
        yield f"/proc/self/fd/{descriptor}/{NAME}"
    finally:
        os.close(descriptor)
