"""A server that gives written answers, one to each connection."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

EMPTY_LIST = json.dumps({"results": [], "next": None})


@dataclass
class Asked:
    """The address of the server, and the requests that came: when, and their first 64 KiB."""

    url: str
    times: list[float] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


def answer(status: str, body: str = "", **headers: str) -> bytes:
    lines = {"Content-Type": "application/json", "Connection": "close", "Content-Length": len(body.encode())}
    named = {**lines, **{name.replace("_", "-"): value for name, value in headers.items()}}
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n{body}".encode()


@contextmanager
def serving(*answers: bytes) -> Iterator[Asked]:
    """Give the answers in their order; nothing instead of an empty one, until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        asked = Asked(f"http://127.0.0.1:{listener.getsockname()[1]}")
        kept: list[socket.socket] = []

        def serve() -> None:
            for each in answers:
                connection, _ = listener.accept()
                asked.times.append(time.monotonic())
                asked.requests.append(connection.recv(65536).decode())
                if each:
                    connection.sendall(each)
                    connection.close()
                else:
                    kept.append(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield asked
        thread.join(30)
        for connection in kept:
            connection.close()
