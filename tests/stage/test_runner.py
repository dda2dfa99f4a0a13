"""The local cluster itself: every killed process comes back with its data, and `down` leaves nothing."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from deploy.local import leftovers
from deploy.local.control import NotRunning
from deploy.local.kubectl import kubectl
from deploy.local.runner import Local

pytestmark = pytest.mark.cluster
START_WITHIN_S = 180.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    local = Local(tmp_path_factory.mktemp("cluster"))
    yield local
    local.down()


@pytest.fixture
def cluster(home: Local) -> Local:
    """Run a control plane for these tests, which kill it, so that others are not affected."""
    home.up(("cluster",))
    return home


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Local]]:
    """Return a function that creates homes with a PostgreSQL and a Redis of their own."""
    monkeypatch.delenv("DATABASE_URL")
    monkeypatch.delenv("REDIS_URL")
    homes: list[Local] = []

    def make(name: str) -> Local:
        local = Local(tmp_path / name)
        homes.append(local)
        local.up(("stores",))
        return local

    yield make
    for local in homes:
        local.down()


def remember(local: Local, name: str) -> None:
    kubectl(local.home, "create", "configmap", name, "--from-literal=kept=yes")


def remembers(local: Local, name: str) -> bool:
    return kubectl(local.home, "get", "configmap", name, "--output=jsonpath={.data.kept}") == "yes"


def supervisor_pid(local: Local) -> int:
    return psutil.Process(next(iter(local.pids().values()))).ppid()


def wait_gone(pids: list[int], within_s: float = 30.0) -> list[int]:
    deadline = time.monotonic() + within_s
    while (alive := [pid for pid in pids if psutil.pid_exists(pid)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    return alive


def test_each_process_comes_back_after_kill_9_and_the_data_is_kept(cluster: Local) -> None:
    remember(cluster, "before-each")
    for name, pid in cluster.pids().items():
        os.kill(pid, signal.SIGKILL)
        assert wait_gone([pid]) == []
        cluster.wait_ready(name)
        assert cluster.pids()[name] != pid
    assert remembers(cluster, "before-each")


def test_all_at_once_come_back_after_kill_9(cluster: Local) -> None:
    remember(cluster, "before-all")
    killed = cluster.pids()
    for pid in killed.values():
        os.kill(pid, signal.SIGKILL)
    assert wait_gone(list(killed.values())) == []
    cluster.up(("cluster",), timeout_s=START_WITHIN_S)
    assert not set(killed.values()) & set(cluster.pids().values())
    assert remembers(cluster, "before-all")


def test_children_die_with_a_killed_supervisor_and_the_next_start_has_the_data(cluster: Local) -> None:
    remember(cluster, "before-supervisor")
    pids = list(cluster.pids().values())
    os.kill(supervisor_pid(cluster), signal.SIGKILL)
    assert wait_gone(pids) == []
    with pytest.raises(NotRunning):
        cluster.status()
    began = time.monotonic()
    cluster.up(("cluster",))
    assert time.monotonic() - began < START_WITHIN_S
    assert remembers(cluster, "before-supervisor")


def test_what_is_held_stays_down_until_started(cluster: Local) -> None:
    cluster.hold("kueue")
    time.sleep(1)
    assert "kueue" not in cluster.pids()
    cluster.start("kueue")
    cluster.wait_ready("kueue")
    assert "kueue" in cluster.pids()


def test_up_of_what_runs_changes_nothing(cluster: Local) -> None:
    before = cluster.pids()
    cluster.up(("cluster",))
    assert cluster.pids() == before


def test_down_leaves_no_process(cluster: Local) -> None:
    pids = [*cluster.pids().values(), supervisor_pid(cluster)]
    cluster.down()
    assert wait_gone(pids) == []
    assert leftovers.find(cluster.root) == []


def test_two_homes_run_side_by_side(stores: Callable[[str], Local]) -> None:
    one, other = stores("one"), stores("other")
    assert not set(one.home.ports.values()) & set(other.home.ports.values())
    one.down()
    assert set(other.pids()) == {"postgres", "redis"}


def test_stores_come_back_with_their_data_after_kill_9(stores: Callable[[str], Local]) -> None:
    import psycopg
    import redis

    local = stores("one")
    with psycopg.connect(local.home.owner_url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS row")
    redis.Redis.from_url(local.env()["REDIS_URL"]).set("kept", "yes")
    time.sleep(1.1)  # the append-only file is flushed every second
    for name in ("postgres", "redis"):
        local.kill(name)
        local.wait_ready(name)
    with psycopg.connect(local.home.owner_url()) as connection:
        assert connection.execute("SELECT row FROM kept").fetchone() == (1,)
    assert redis.Redis.from_url(local.env()["REDIS_URL"]).get("kept") == b"yes"


def test_leftovers_of_a_killed_supervisor_are_ended_by_the_next(stores: Callable[[str], Local]) -> None:
    local = stores("one")
    stray = psutil.Popen(["sleep", "600"], env=leftovers.mark(local.root), start_new_session=True)
    os.kill(supervisor_pid(local), signal.SIGKILL)
    local.up(("stores",))
    assert stray.wait(timeout=30) == -signal.SIGKILL
