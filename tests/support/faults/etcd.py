"""Operations on a local cluster's etcd: a copy of its data, a restore, its quota and its alarms."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from deploy.local import control_plane, leftovers, probes
from deploy.local.home import Home
from deploy.local.runner import Local
from tests.support.cluster import etcd_client
from tests.support.cluster.waiting import eventually

NOSPACE = "NOSPACE"


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
