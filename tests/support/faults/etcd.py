"""Operations on a local cluster's etcd: a copy of its data, a restore, its quota and its alarms."""

import json
import os
import shutil
import signal
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil
import urllib3
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from deploy.local import control_plane, leftovers, probes
from deploy.local.home import Home
from deploy.local.runner import Local
from tests.support.cluster import etcd_client
from tests.support.cluster.waiting import eventually

NOSPACE = "NOSPACE"
SILENT_S = 5.0


def data(home: Home) -> Path:
    return home.root / "etcd" / "data"


def copy(local: Local, target: Path) -> Path:
    """Copy its data as a crash at this moment would leave them: the process is paused meanwhile."""
    process = psutil.Process(local.pids()["etcd"])
    process.send_signal(signal.SIGSTOP)
    try:
        eventually(lambda: process.status() == psutil.STATUS_STOPPED)
        shutil.copytree(data(local.home), target)
    finally:
        process.send_signal(signal.SIGCONT)
    return target


def restore(local: Local, copied: Path) -> None:
    """Replace its data by the copy; it must not run."""
    assert "etcd" not in local.pids()
    shutil.rmtree(data(local.home))
    shutil.copytree(copied, data(local.home))


@contextmanager
def with_quota(local: Local, quota_bytes: int, log: Path) -> Iterator[None]:
    """Restart etcd with another quota; restart it with its own at the end of the block."""
    home = local.home
    env = {**os.environ, **leftovers.mark(home.root)}
    local.hold("etcd")
    with log.open("wb") as output:
        command = control_plane.etcd(home, quota_bytes)
        process = subprocess.Popen(command, cwd=data(home).parent, env=env, stdout=output, stderr=output)
    try:
        eventually(lambda: probes.etcd(home))
        yield
    finally:
        process.kill()
        process.wait()
        local.start("etcd")
    local.wait_ready("etcd")


class Etcd:
    """A client of its JSON API (the gRPC gateway), with the API server's certificate."""

    def __init__(self, home: Home) -> None:
        self._url = f"https://127.0.0.1:{home.ports['etcd']}/v3"
        self._pool = etcd_client.pool(home, timeout_s=30)

    def revision(self) -> int:
        return int(self._ask("maintenance/status")["header"]["revision"])

    def size_bytes(self) -> int:
        """Return the size that etcd compares with its quota."""
        return int(self._ask("maintenance/status")["dbSize"])

    def alarms(self) -> list[tuple[str, str]]:
        """Return the active alarms as (member, alarm)."""
        found = self._ask("maintenance/alarm", action="GET").get("alarms", [])
        return [(alarm["memberID"], alarm["alarm"]) for alarm in found]

    def read(self, first: str, last: str) -> tuple[dict[str, bytes], int]:
        """Return the values of the keys from ``first`` to before ``last``, and the revision."""
        answer = self._ask("kv/range", **_keys(first, last))
        pairs = {b64decode(pair["key"]).decode(): b64decode(pair["value"]) for pair in answer.get("kvs", ())}
        return pairs, int(answer["header"]["revision"])

    def writes(self, first: str, last: str, after: int) -> Iterator[tuple[str, int, bytes | None]]:
        """Yield key, revision and value of each write to these keys after a revision, as it happens; None for a
        deletion. Ends when there was none for SILENT_S.
        """
        body = {"create_request": {**_keys(first, last), "start_revision": after + 1}}
        timeout = urllib3.Timeout(connect=5, read=SILENT_S)
        with closing(
            self._pool.request(
                "POST", f"{self._url}/watch", body=json.dumps(body), timeout=timeout, preload_content=False
            )
        ) as answer:
            try:
                for line in _lines(answer):
                    result = json.loads(line)["result"]
                    assert not result.get("canceled"), f"the watch from {after} on was ended: {result}"
                    for event in result.get("events", ()):
                        pair = event["kv"]
                        value = None if event.get("type") == "DELETE" else b64decode(pair["value"])
                        yield b64decode(pair["key"]).decode(), int(pair["mod_revision"]), value
            except ReadTimeoutError:
                return

    def make_room(self) -> None:
        """Compact, defragment and disarm, as ``etcdctl`` does by these names."""
        self._ask("kv/compaction", revision=self.revision(), physical=True)
        self._ask("maintenance/defragment")
        for member, alarm in self.alarms():
            self._ask("maintenance/alarm", action="DEACTIVATE", memberID=member, alarm=alarm)

    def _ask(self, path: str, **body: Any) -> dict[str, Any]:
        answer = self._pool.request("POST", f"{self._url}/{path}", body=json.dumps(body))
        assert answer.status == 200, f"{path}: {answer.status} {answer.data.decode()}"
        return dict(json.loads(answer.data))


def _keys(first: str, last: str) -> dict[str, str]:
    return {"key": b64encode(first.encode()).decode(), "range_end": b64encode(last.encode()).decode()}


def _lines(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    buffer = b""
    while chunk := answer.read1(65536):
        *lines, buffer = (buffer + chunk).split(b"\n")
        yield from lines
    raise ProtocolError("etcd ended the watch")
