"""The process table of a local cluster: one row per process.

The runner starts a row when all rows it needs are ready, and stops rows by ascending `stop`: the portal, then
controllers and watching clients, then the API server (it drains open watches for half a minute, so watching clients
stop before it), then the stores.
"""

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from deploy.local import control_plane, kueue, probes, stores, webhook
from deploy.local.home import REPOSITORY, Home
from deploy.local.kubeconfigs import component_kubeconfig
from deploy.local.probes import Probe
from deploy.local.token import LIFE_S

GO = {"GOGC": "400"}
"""Memory is plentiful here and processors are few: Go collects garbage a quarter as often as by default."""


@dataclass(frozen=True)
class Row:
    """A process. Without `ready` it is a step, which runs to completion once per start of the runner."""

    name: str
    command: tuple[str, ...]
    ready: Probe | None
    needs: tuple[str, ...] = ()
    stop: int = 0
    cwd: Path = REPOSITORY
    env: dict[str, str] = field(default_factory=dict)
    stop_signal: signal.Signals = signal.SIGTERM
    stop_within_s: float = 15.0
    start_within_s: float = 60.0  # then restarted, as by a liveness probe (Kueue's start can hang)


def table(home: Home, groups: tuple[str, ...]) -> tuple[Row, ...]:
    """Return the rows of `groups`, each after the rows it needs."""
    return tuple(row for group, rows in GROUPS.items() if group in groups for row in rows(home))


def cluster(home: Home) -> tuple[Row, ...]:
    """Return the rows of the control plane, Kueue and the simulated hardware, with the kinds of node named in FLEET."""
    hardware = component_kubeconfig(home, "hardware")
    publisher = ("deploy.local.fleet", f"--kubeconfig={hardware}")
    kinds = [f"--extra={kind}" for kind in os.environ.get("FLEET", "").split()]
    extra_nodes = (Row("fleet-kinds", _python(*publisher, *kinds), None, ("cluster-objects",)),) if kinds else ()
    mutation = (
        (Row("webhook", webhook.command(home, home.ports["webhook"], home.certs / "webhook"),
            probes.webhook, ("cluster-objects",), stop=1, env=GO),)
        if webhook.is_needed() else ()
    )  # fmt: skip
    return (
        Row("etcd", control_plane.etcd(home), probes.etcd, stop=3, cwd=home.root / "etcd", env=GO),
        Row("kube-apiserver", control_plane.apiserver(home), probes.apiserver, ("etcd",), stop=2, env=GO),
        Row("kube-controller-manager", control_plane.controller_manager(home),
            probes.component("controller-manager"), ("kube-apiserver",), stop=1, env=GO),
        Row("kube-scheduler", control_plane.scheduler(home),
            probes.component("scheduler"), ("kube-apiserver",), stop=1, env=GO),
        Row("kueue-manifests", _step(home, "kueue-manifests"), None, ("kube-apiserver",)),
        Row("kueue-certificates", _step(home, "kueue-certificates"), None, ("kueue-manifests",)),
        Row("kueue", control_plane.kueue_manager(home),
            probes.kueue, ("kueue-manifests",), stop=1, cwd=kueue.folder(home), env=GO),
        Row("kueue-visibility", _step(home, "kueue-visibility"), None, ("kueue",)),
        Row("cluster-objects", _step(home, "cluster-objects"), None, ("kueue-manifests",)),
        Row("kwok", control_plane.kwok(home), probes.kwok, ("kube-apiserver",), stop=1,
            env={**GO, "KWOK_WORKDIR": str(home.root / "kwok")}),
        *mutation,
        *extra_nodes,
        Row("hardware", _python(*publisher), probes.log_says("hardware", "published"),
            ("kwok", "cluster-objects", *(row.name for row in extra_nodes)), stop=1),
        Row("token", _python("deploy.local.token", f"--home={home.root}"),
            probes.fresh(home.portal_token, LIFE_S), ("cluster-objects",), stop=1),
    )  # fmt: skip


def store_rows(home: Home) -> tuple[Row, ...]:
    """Return the rows of PostgreSQL and Redis, without a store whose URL is set."""
    postgres = (
        Row("postgres-data", _step(home, "postgres-data"), None),
        # SIGINT is PostgreSQL's fast shutdown; SIGTERM waits until its clients disconnect.
        Row("postgres", stores.postgres_command(home), probes.postgres, ("postgres-data",), stop=3,
            stop_signal=signal.SIGINT),
        Row("postgres-role", _step(home, "postgres-role"), None, ("postgres",)),
    )  # fmt: skip
    redis = (
        Row("redis-configuration", _step(home, "redis-configuration"), None),
        Row("redis", stores.redis_command(home), probes.redis, ("redis-configuration",), stop=3,
            cwd=home.root / "redis"),
    )  # fmt: skip
    return (
        *(() if os.environ.get("DATABASE_URL") else postgres),
        *(() if os.environ.get("REDIS_URL") else redis),
    )


def portal(home: Home) -> tuple[Row, ...]:
    """Return the rows of database and seeds, then web, worker, beat and watcher, and of a past if HISTORY is set."""
    env = home.env()
    owner = {**env, "DATABASE_URL": home.owner_url()}
    role = unquote(urlsplit(home.database_url()).username or "")
    grant = Row("grant", _python("manage", "grant", role), None, ("migrate",), env=owner)
    bind, schedule = f"--bind=127.0.0.1:{home.ports['web']}", f"--schedule={home.root / 'celerybeat-schedule'}"
    days = os.environ.get("HISTORY")
    history = (Row("history", _python(*history_command(days)), None, ("seed-quotas",), env=env),) if days else ()
    return (
        Row("migrate", _python("manage", "migrate", "--no-input"), None, ("postgres-role", "redis"),
            env=owner | {"PGAPPNAME": "gpu-portal-migrate"}),
        *((grant,) if home.owner_url() != home.database_url() else ()),  # one role for all has all rights
        Row("seed", _python("manage", "seed", f"--home={home.root}"), None, ("migrate", "grant"), env=env),
        Row("web", _python("portal.server", "web", bind), probes.web, ("seed", "token"), env=env),
        Row("worker", _python("portal.server", "worker"),
            probes.log_says("worker", " ready."), ("seed", "token", "kueue"), env=env),
        Row("beat", _python("portal.server", "beat", schedule),
            probes.log_says("beat", "beat: Starting"), ("seed",), env=env),
        Row("watcher", _python("portal.server", "watch"),
            probes.log_says("watcher", "watch ready"), ("seed", "token", "kueue", "hardware"), env=env),
        Row("seed-quotas", _python("manage", "seed_quotas"), None, ("watcher", "worker"), env=env),
        *history,
    )  # fmt: skip


GROUPS: dict[str, Callable[[Home], tuple[Row, ...]]] = {
    "cluster": cluster,
    "stores": store_rows,
    "portal": portal,
}


def history_command(days: str) -> tuple[str, ...]:
    """Return the module and arguments that write a past of so many days, as in HISTORY: 30d."""
    return ("manage", "simulate_history", f"--days={days}")


def _python(module: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", module, *arguments)


def _step(home: Home, name: str) -> tuple[str, ...]:
    return _python("deploy.local.steps", name, f"--home={home.root}")
