"""Runs a pod on a GPU of the portal, and releases the GPU however the run ends. Usage: task.py pod.yaml RUN

For workflow engines; RUN identifies the run and its try, in Airflow {{ ts_nodash | lower }}-{{ ti.try_number }}. Needs
requests and kubectl, and in the environment GPU_PORTAL_URL, GPU_PORTAL_TOKEN (scopes read and request) and
GPU_PORTAL_PROJECT.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from urllib3.util import Retry

API = os.environ["GPU_PORTAL_URL"].rstrip("/") + "/api/v1"
PROJECT = os.environ["GPU_PORTAL_PROJECT"]
OFFERING = os.environ.get("OFFERING", "h100/whole")
HOURS = os.environ.get("HOURS", "1")  # bounds the cost if this machine is lost, and nobody is left to release
QUEUE_TIMEOUT_S = float(os.environ.get("QUEUE_TIMEOUT_S", "1800"))
RUN_TIMEOUT_S = float(os.environ.get("RUN_TIMEOUT_S", "3000"))  # a kubeconfig is valid for an hour at most
HTTP_TIMEOUT_S = float(os.environ.get("HTTP_TIMEOUT_S", "30"))
HTTP_REPEATS = int(os.environ.get("HTTP_REPEATS", "20"))
LOOK_EVERY_S = 2.0


class Repeats(Retry):
    """Repeats as Retry-After says, also what is in_progress: 409, while the first request with the key still runs."""

    RETRY_AFTER_STATUS_CODES = Retry.RETRY_AFTER_STATUS_CODES | {409}


class Bearer(AuthBase):
    """The token. As an auth object it comes before a password that ~/.netrc may have for the host."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {os.environ['GPU_PORTAL_TOKEN']}"
        return request


def session() -> requests.Session:
    """Return a session that repeats what got no answer or a busy one.

    Repeating a POST is safe: a request has an Idempotency-Key, and a release has its effect once anyway.
    """
    portal = requests.Session()
    portal.auth = Bearer()
    repeats = Repeats(
        total=HTTP_REPEATS,
        backoff_factor=0.5,
        backoff_max=3,
        status_forcelist=(429, 502, 503, 504),
        allowed_methods=None,
        raise_on_status=False,
    )
    for scheme in ("http://", "https://"):
        portal.mount(scheme, HTTPAdapter(max_retries=repeats))
    return portal


def call(portal: requests.Session, method: str, path: str, **options: Any) -> dict[str, Any]:
    answer = portal.request(method, f"{API}/{path}", timeout=HTTP_TIMEOUT_S, **options)
    if answer.headers.get("Content-Type", "").startswith("application/problem+json"):
        problem = answer.json()
        error = requests.HTTPError if "Retry-After" in answer.headers else RuntimeError  # busy, or refused
        raise error(f"{problem['detail']} {problem['hint']} ({problem['reason']})")
    answer.raise_for_status()
    body: dict[str, Any] = answer.json()
    return body


def request(portal: requests.Session, name: str) -> dict[str, Any]:
    """Return the allocation that is requested under a name, which is also the key that makes it only one."""
    body = {"project": PROJECT, "offering": OFFERING, "name": name, "hours": HOURS, "requeue": False}

    def post() -> dict[str, Any]:
        return call(portal, "POST", "allocations", json=body, headers={"Idempotency-Key": name})

    try:
        return post()
    except (KeyboardInterrupt, SystemExit, requests.RequestException) as error:  # no answer, yet perhaps its effect
        ignore_signals()
        if not isinstance(error, requests.RequestException):
            with suppress(requests.RequestException, RuntimeError):
                post()  # returns when the first one is done, whose key it has
        release(portal, project=[PROJECT], name=[name], mine=True)
        raise


@contextmanager
def allocation(portal: requests.Session, name: str) -> Iterator[dict[str, Any]]:
    """Request a GPU, wait until it is held, and release it at the end."""
    row = request(portal, name)
    try:
        deadline = time.monotonic() + QUEUE_TIMEOUT_S
        while row["phase"] != "active":
            if row["phase"] == "ended":
                raise RuntimeError(f"{name} ended: {row['outcome']}. {row['message']}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name} is {row['phase']} after {QUEUE_TIMEOUT_S:g} s. {row['message']}")
            time.sleep(LOOK_EVERY_S)
            row = call(portal, "GET", f"allocations/{row['id']}")
        yield row
    finally:
        ignore_signals()
        release(portal, ids=[row["id"]])


def ignore_signals() -> None:
    """Let no second signal end the release."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def release(portal: requests.Session, **which: Any) -> None:
    answer = call(portal, "POST", "allocations/release", json={**which, "reason": "The task has ended."})
    for row in answer["results"]:
        if problem := row["problem"]:
            raise RuntimeError(f"{row['id']} is not released. {problem['detail']} {problem['hint']}")


def run_pod(portal: requests.Session, row: dict[str, Any], pod: str) -> str:
    """Run the pod on the GPU, print its log, and return its last phase."""
    name = row["name"]
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder, "kubeconfig")
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(call(portal, "GET", f"allocations/{row['id']}/connect")["kubeconfig"])

        def kubectl(*words: str, tries: int = 4, stdin: str | None = None) -> str:
            command = ["kubectl", f"--kubeconfig={kubeconfig}", "--request-timeout=10s", *words]
            for again in range(tries):
                done = subprocess.run(command, input=stdin, text=True, capture_output=True, timeout=60)
                if done.returncode == 0:
                    break
                time.sleep(2**again)
            done.check_returncode()
            return done.stdout

        kubectl("apply", "-f", "-", stdin=pod.replace("NAME", name))
        deadline, phase = time.monotonic() + RUN_TIMEOUT_S, ""
        while phase not in ("Succeeded", "Failed"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"The pod {name} is {phase} after {RUN_TIMEOUT_S:g} s.")
            time.sleep(LOOK_EVERY_S)
            phase = kubectl("get", "pod", name, "-o", "jsonpath={.status.phase}")
        try:
            print(kubectl("logs", name, tries=1))  # before the release, which deletes the pod
        except subprocess.CalledProcessError as error:
            print(f"No log: {error.stderr}", file=sys.stderr)
        return phase


def main(pod: str, run: str) -> int:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))  # so that `finally` runs
    portal = session()
    try:
        with allocation(portal, f"task-{run}") as row:
            phase = run_pod(portal, row, Path(pod).read_text())
    except KeyboardInterrupt:
        return 130
    print(f"The pod task-{run} is {phase}.")
    return 0 if phase == "Succeeded" else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
