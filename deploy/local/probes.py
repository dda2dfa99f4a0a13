"""Readiness probes: each sends a request to the process, or reads its output; a pid alone proves nothing."""

import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError

from deploy.local.home import Home
from deploy.local.kueue import folder as kueue_folder
from deploy.local.stores import postgres_binaries

Probe = Callable[[Home], bool]
TIMEOUT_S = 2.0
# The supervisor writes it into the log at each start; only later output counts.
START_MARK = "--- started "


def etcd(home: Home) -> bool:
    return _https(home, "etcd", "/readyz", trust=home.certs / "etcd-ca.crt", client="etcd-client")


def apiserver(home: Home) -> bool:
    return _https(home, "apiserver", "/readyz", trust=home.certs / "ca.crt", client="admin")


def component(port: str) -> Probe:
    """Return whether kube-controller-manager or kube-scheduler is healthy; the first serves no /readyz."""

    def ready(home: Home) -> bool:
        return _https(home, port, "/healthz", trust=home.certs / "ca.crt")

    return ready


def kueue(home: Home) -> bool:
    """Return whether Kueue's readiness check, webhooks and visibility server respond."""
    certificate = kueue_folder(home) / "visibility-certs" / "apiserver.crt"
    serves = _http(home, "kueue-health", "/readyz") and certificate.exists()
    return serves and _https(home, "kueue-visibility", "/readyz", trust=certificate)


def kwok(home: Home) -> bool:
    return _http(home, "kwok", "/healthz")


def webhook(home: Home) -> bool:
    return _https(home, "webhook", "/readyz", trust=home.certs / "ca.crt")


def web(home: Home) -> bool:
    return _http(home, "web", "/readyz")


def redis(home: Home) -> bool:
    """Return whether Redis answers PING; while it loads its file it answers -LOADING."""
    command = f"AUTH {home.secret('redis')}\r\nPING\r\n".encode()
    try:
        with socket.create_connection(("127.0.0.1", home.ports["redis"]), TIMEOUT_S) as connection:
            connection.settimeout(TIMEOUT_S)
            connection.sendall(command)
            answer = b""
            while answer.count(b"\r\n") < 2 and (part := connection.recv(256)):
                answer += part
    except OSError:
        return False
    return answer == b"+OK\r\n+PONG\r\n"


def postgres(home: Home) -> bool:
    """Return whether PostgreSQL accepts connections, by its own test."""
    where = ("--host=127.0.0.1", f"--port={home.ports['postgres']}")
    command = [str(postgres_binaries() / "pg_isready"), "--quiet", *where]
    return subprocess.run(command, check=False).returncode == 0


def log_says(name: str, words: str) -> Probe:
    """Return whether the log has `words` since the last start: for processes without a port."""

    def ready(home: Home) -> bool:
        with home.log(name).open("rb") as log:
            log.seek(0, 2)
            log.seek(max(0, log.tell() - 256 * 1024))
            text = log.read().decode(errors="replace")
        return words in text.rpartition(START_MARK)[2]

    return ready


def fresh(path: Path, within_s: float) -> Probe:
    """Return whether the file was written within the last `within_s` seconds."""

    def ready(_: Home) -> bool:
        try:
            return time.time() - path.stat().st_mtime < within_s
        except FileNotFoundError:
            return False

    return ready


def _http(home: Home, port: str, path: str) -> bool:
    return _answers(f"http://127.0.0.1:{home.ports[port]}{path}")


def _https(home: Home, port: str, path: str, *, trust: Path, client: str = "") -> bool:
    """Return whether the address answers; `client` names a certificate of the home."""
    own = home.certs / client
    pair = {"cert_file": f"{own}.crt", "key_file": f"{own}.key"} if client else {}
    return _answers(f"https://127.0.0.1:{home.ports[port]}{path}", ca_certs=str(trust), **pair)


def _answers(url: str, **tls: Any) -> bool:
    with urllib3.PoolManager(timeout=TIMEOUT_S, retries=False, **tls) as pool:
        try:
            return pool.request("GET", url).status == 200
        except HTTPError:
            return False
