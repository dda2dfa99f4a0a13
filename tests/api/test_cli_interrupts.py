"""Ctrl-C and SIGTERM while the gpu-portal command waits: at once, and never without a word of what stays requested."""

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from allocations.models import Allocation
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)
WAITS = ("request", "l40s/whole", "--project", "vision-train", "--name", "train", "--wait")
AT_ONCE_S = 5


def interrupted(process, number=signal.SIGINT):
    """Interrupt a command that waits; return its exit code, its output and its errors after the first line."""
    assert "is queued" in process.stderr.readline()
    start = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - start < AT_ONCE_S
    return process.returncode, out, err


def test_an_interrupt_exits_130_and_says_what_stays_requested_and_how_to_release_it(start):
    code, out, err = interrupted(start(*WAITS))
    row = Allocation.objects.get()
    assert (code, out) == (130, "")
    assert f"train ({row.pk}) stays requested: it is queued, and is charged from when it is held." in err
    assert f"gpu-portal release {row.pk}" in err
    assert row.desired == Allocation.Desired.HELD


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_on_request_an_interrupt_releases_it(start, number, code):
    found, _, err = interrupted(start(*WAITS, "--release-on-interrupt"), number)
    assert (found, "is being released" in err) == (code, True)
    assert Allocation.objects.get().desired == Allocation.Desired.RELEASED


def test_waiting_for_an_existing_one_is_interrupted_alike(run, start):
    run(*WAITS[:-1])
    process = start("wait", "train", "--release-on-interrupt")
    eventually(lambda: catches_sigterm(process))
    process.terminate()
    assert process.wait(30) == 143
    assert Allocation.objects.get().desired == Allocation.Desired.RELEASED


def test_an_interrupt_before_the_answer_names_the_key_that_asks_only_once(start, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("GPU_PORTAL_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        process = start(*WAITS, "--idempotency-key", "run-7")
        connection, _ = silent.accept()
        with connection:
            connection.recv(65536)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "--idempotency-key run-7" in err


@contextmanager
def withholding(url: str) -> Iterator[tuple[str, threading.Event]]:
    """Relay connections to the portal, but not the answer on the first. Yield the address, and an event that tells of
    that answer.
    """
    port, answered = int(url.rpartition(":")[2]), threading.Event()

    def pump(source: socket.socket, target: socket.socket, *, withholds: bool = False) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if withholds:
                    answered.set()
                else:
                    target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def accept(connections: ExitStack, listener: socket.socket) -> None:
        is_first = True
        with suppress(OSError):
            while True:
                client = connections.enter_context(listener.accept()[0])
                portal = connections.enter_context(socket.create_connection(("127.0.0.1", port)))
                for source, target, withholds in ((client, portal, False), (portal, client, is_first)):
                    options = {"withholds": withholds}
                    threading.Thread(target=pump, args=(source, target), kwargs=options, daemon=True).start()
                is_first = False

    with ExitStack() as connections:
        listener = connections.enter_context(socket.create_server(("127.0.0.1", 0)))
        threading.Thread(target=accept, args=(connections, listener), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", answered
        listener.shutdown(socket.SHUT_RDWR)  # ends the wait for the next connection


def test_on_request_an_interrupt_before_the_answer_releases_what_was_requested(start, signed_in, monkeypatch):
    with withholding(signed_in) as (address, answered):
        monkeypatch.setenv("GPU_PORTAL_URL", address)
        process = start(*WAITS, "--release-on-interrupt")
        assert answered.wait(30)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, "is being released" in err) == (130, True)
    assert Allocation.objects.get().desired == Allocation.Desired.RELEASED


def test_a_timeout_says_what_stays_requested_too(run):
    result = run(*WAITS, "--timeout", "0.2", "-o", "json")
    assert result.exit_code == 4
    assert f"gpu-portal release {json.loads(result.stdout)['id']}" in result.stderr


def catches_sigterm(process):
    """Whether the process has a handler for SIGTERM, so that it waits."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    [caught] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)
