"""The API server or Kueue is down for twenty seconds, and a watch connection dies silently."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from allocations.cluster.client import WATCH_S
from deploy.local.home import REPOSITORY
from deploy.local.runner import Local
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.waiting import eventually
from tests.support.faults import control_plane
from tests.support.faults.crowd import Crowd
from tests.support.faults.fault import Fault
from tests.support.faults.proxy import Proxy

pytestmark = pytest.mark.faults
AWAY_S = 20.0


def test_the_api_server_is_away_for_twenty_seconds(
    local: Local, crowd: Crowd, kubectl: Kubectl, under_fault: Fault
) -> None:
    with under_fault(), control_plane.outage(local, kubectl, crowd.projects[0].namespace):
        request_during_outage(crowd)


def test_kueue_is_away_for_twenty_seconds(local: Local, crowd: Crowd, under_fault: Fault) -> None:
    with under_fault():
        local.hold("kueue")
        request_during_outage(crowd)
        local.start("kueue")
        local.wait_ready("kueue")


def request_during_outage(crowd: Crowd) -> None:
    back_at = time.monotonic() + AWAY_S
    crowd.release(crowd.live()[:10])
    eventually(lambda: time.monotonic() > back_at, within_s=AWAY_S + 5)


@pytest.fixture
def proxied_watcher(local: Local, tmp_path: Path) -> Iterator[Proxy]:
    """Replace the running watcher by one behind a proxy."""
    proxy = Proxy(local.home.ports["apiserver"])
    config = yaml.safe_load(local.portal_kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
    kubeconfig, log = tmp_path / "proxied.kubeconfig", tmp_path / "watcher.log"
    kubeconfig.write_text(yaml.safe_dump(config))
    env = {**os.environ, "KUBECONFIG": str(kubeconfig), "LOG_LEVEL": "INFO"}
    local.hold("watcher")
    with log.open("wb") as words:
        command = [sys.executable, "-m", "manage", "watch"]
        watcher = subprocess.Popen(command, cwd=REPOSITORY, env=env, stdout=words, stderr=words)
    try:
        eventually(lambda: "watch ready" in log.read_text(), within_s=120)
        yield proxy
    finally:
        watcher.kill()
        watcher.wait()
        proxy.close()
        local.start("watcher")
        local.wait_ready("watcher")


def test_watches_that_went_dead_without_a_word_are_found_out(
    proxied_watcher: Proxy, crowd: Crowd, under_fault: Fault
) -> None:
    """Nothing repairs the dead connections: the client has to detect them."""
    with under_fault(hidden_s=WATCH_S * 2):
        assert proxied_watcher.cut() > 0
        crowd.release(crowd.live()[:10])
