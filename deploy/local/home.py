"""The state folder of one checkout's local cluster: paths, ports, and the environment of its processes.

All data of a run is below one folder (default `.local`), so two checkouts can run side by side, and removing the folder
removes the cluster.
"""

import contextlib
import fcntl
import json
import os
import random
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.local.errors import LocalError

REPOSITORY = Path(__file__).parents[2]
PORTS = (
    "etcd",
    "etcd-peer",
    "apiserver",
    "controller-manager",
    "scheduler",
    "kueue-health",
    "kueue-metrics",
    "kueue-webhook",
    "kueue-visibility",
    "kwok",
    "webhook",
    "postgres",
    "redis",
    "web",
)
WEB_PORT = 8000
ETCD_QUOTA_BYTES = 4 * 1024**3  # twice etcd's default, which one run of all tests does not reach
APPLICATION_ROLE = "gpu_portal_app"
# Below Linux's ephemeral range (32768 and up): no outgoing connection can take a port between two starts.
PORT_RANGE = range(20000, 32000)


@dataclass(frozen=True)
class Home:
    """Paths below `root`; `ports` by name (of PORTS); `binaries` has the seven programs."""

    root: Path
    ports: Mapping[str, int]
    binaries: Path

    @property
    def certs(self) -> Path:
        return self.root / "certs"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def kubeconfig(self) -> Path:
        """Return the local administrator's kubeconfig; the portal never gets it."""
        return self.root / "kubeconfig"

    @property
    def portal_kubeconfig(self) -> Path:
        return self.root / "portal.kubeconfig"

    @property
    def portal_token(self) -> Path:
        return self.root / "portal.token"

    @property
    def apiserver(self) -> str:
        return f"https://127.0.0.1:{self.ports['apiserver']}"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports['web']}"

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def secret(self, name: str) -> str:
        """Return a password of this home, created at first use and then kept."""
        path = self.root / f"{name}.secret"
        if not path.exists():
            write_whole(path, secrets.token_urlsafe(32))
        return path.read_text()

    def database_url(self) -> str:
        """Return the URL for the portal's processes, of a role that owns no table."""
        return os.environ.get("DATABASE_URL") or self._own_database(
            APPLICATION_ROLE, self.secret("postgres-application")
        )

    def owner_url(self) -> str:
        """Return the URL for migrations, of the role that owns the tables. If only DATABASE_URL is set, it is used for
        both.
        """
        if url := os.environ.get("DATABASE_URL"):
            return os.environ.get("DATABASE_OWNER_URL") or url
        return self._own_database("portal", self.secret("postgres"))

    def _own_database(self, role: str, password: str) -> str:
        return f"postgresql://{role}:{password}@127.0.0.1:{self.ports['postgres']}/portal"

    def redis_url(self) -> str:
        url = os.environ.get("REDIS_URL")
        return url or f"redis://:{self.secret('redis')}@127.0.0.1:{self.ports['redis']}/0"

    def env(self) -> dict[str, str]:
        """Return the environment of the portal's processes, with this home's cluster and stores."""
        return {
            "DATABASE_URL": self.database_url(),
            "AUDIT_HEADS_FILE": str(self.root / "audit-heads.jsonl"),
            "REDIS_URL": self.redis_url(),
            "KUBECONFIG": str(self.portal_kubeconfig),
            "DJANGO_SETTINGS_MODULE": "portal.settings",
            "SECRET_KEY": self.secret("django"),
            "METRICS_TOKEN": self.secret("metrics"),
            "ETCD_QUOTA_BYTES": str(ETCD_QUOTA_BYTES),
            "GPU_PORTAL_LOCAL": "1",
            "PORTAL_URL": self.url,
        }


def open_home(root: Path, binaries: Path, claim: Callable[[int], bool] | None = None) -> Home:
    """Return the home at `root` with its stored ports; with `claim`, replace those it refuses.

    Ports may be claimed only while no process of this home runs.
    """
    root = root.resolve()
    (root / "logs").mkdir(parents=True, exist_ok=True)
    path = root / "ports.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    ports = kept if claim is None and set(PORTS) <= set(kept) else choose_ports(kept, claim or is_free)
    if ports != kept:
        write_whole(path, json.dumps(ports, indent=2) + "\n")
    return Home(root=root, ports=ports, binaries=binaries)


def write_whole(path: Path, text: str) -> None:
    """Write a file that only its owner reads, so that no reader and no interrupted start leaves half of it."""
    new = path.with_name(f"{path.name}.new")
    new.touch(mode=0o600)
    new.write_text(text)
    new.replace(path)


def choose_ports(kept: Mapping[str, int], claim: Callable[[int], bool]) -> dict[str, int]:
    """Return a port for each name of PORTS that `claim` accepts: the stored one if it does."""
    chosen: dict[str, int] = {}
    candidates = random.sample(PORT_RANGE, k=1000)
    for name in PORTS:
        first = [kept[name]] if name in kept else []
        preferred = [*first, *range(WEB_PORT, WEB_PORT + 100)] if name == "web" else [*first, *candidates]
        port = next((port for port in preferred if port not in chosen.values() and claim(port)), None)
        if port is None:
            raise LocalError(f"no free port for {name} on 127.0.0.1 among {min(preferred)}-{max(preferred)}")
        chosen[name] = port
    return chosen


@contextlib.contextmanager
def claims(folder: Path) -> Iterator[Callable[[int], bool]]:
    """Yield a function that claims a free port until the block ends, for all homes of this machine with the same
    `folder`.

    Servers listen only later, so two checkouts started together could otherwise choose the same port.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:

        def claim(port: int) -> bool:
            lock = stack.enter_context((folder / str(port)).open("w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return is_free(port)

        yield claim


def is_free(port: int) -> bool:
    """Return whether a server could listen on 127.0.0.1:port now."""
    with contextlib.closing(socket.socket()) as probe:
        # Like Go's and Python's servers: connections of an earlier run in TIME_WAIT do not matter.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
