"""Ctrl-C and SIGTERM while the gpu-portal command waits: at once, and never without a word of what stays requested."""

import json
import signal
import socket
import time
from pathlib import Path

import pytest

from allocations.models import Allocation
from tests.support.cluster.waiting import eventually
from tests.support.lost_answers import requests_kept_waiting, withholding

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


def test_on_request_an_interrupt_before_the_answer_releases_what_was_requested(start, signed_in, monkeypatch):
    with withholding(signed_in) as (address, answered):
        monkeypatch.setenv("GPU_PORTAL_URL", address)
        process = start(*WAITS, "--release-on-interrupt")
        assert answered.wait(30)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, "is being released" in err) == (130, True)
    assert Allocation.objects.get().desired == Allocation.Desired.RELEASED


def test_on_request_an_interrupt_waits_for_a_request_that_the_portal_still_works_on(
    start, signed_in, monkeypatch, settings
):
    settings.PERSON_REQUESTS_AT_ONCE = 2  # as with a second web process
    with withholding(signed_in, connections=0) as (address, answered):
        monkeypatch.setenv("GPU_PORTAL_URL", address)
        with requests_kept_waiting("vision-train") as is_one_waiting:
            process = start(*WAITS, "--release-on-interrupt")
            eventually(is_one_waiting)
            begin = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert answered.wait(30)  # to the repeated request: in_progress
        _, err = process.communicate(timeout=30)
        assert time.monotonic() - begin < AT_ONCE_S
    assert (process.returncode, "is being released" in err) == (130, True)
    assert Allocation.objects.get().desired == Allocation.Desired.RELEASED


def test_an_interrupt_that_cannot_learn_what_was_requested_ends_at_once_and_names_the_key(start, settings):
    settings.PERSON_REQUESTS_AT_ONCE = 2  # as with a second web process
    with requests_kept_waiting("vision-train") as is_one_waiting:
        process = start(*WAITS, "--release-on-interrupt", "--idempotency-key", "run-7")
        eventually(is_one_waiting)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert time.monotonic() - begin < AT_ONCE_S
    assert process.returncode == 130
    assert "Interrupted, and not released" in err
    assert "--idempotency-key run-7" in err
    eventually(Allocation.objects.exists)


def test_an_interrupt_is_a_problem_document_with_json(start):
    process = start(*WAITS, "-o", "json")
    eventually(Allocation.objects.exists)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    found = json.loads(err)
    assert (process.returncode, out, found["reason"]) == (130, "", "interrupted")
    assert found["detail"].startswith("Interrupted")


def test_a_timeout_is_a_problem_document_with_json(run):
    found = json.loads(run(*WAITS, "--timeout", "0.2", "-o", "json").stderr)
    assert found["reason"] == "timeout"
    assert "stays requested" in found["detail"]


def test_a_timeout_says_what_stays_requested_too(run):
    result = run(*WAITS, "--timeout", "0.2", "-o", "json")
    assert result.exit_code == 4
    assert f"gpu-portal release {json.loads(result.stdout)['id']}" in result.stderr


def catches_sigterm(process):
    """Whether the process has a handler for SIGTERM, so that it waits."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    [caught] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)
