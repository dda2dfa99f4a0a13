"""Reads how to reach the API server (server, CA and token) from a kubeconfig or from the pod's service account.

A kubeconfig with any other entry is refused: an ``exec`` or ``auth-provider`` entry would run a program that the author
of the file chose. A token file is read again when it changes, since bound tokens expire within an hour.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from os import environ
from pathlib import Path
from typing import Any

import yaml

from allocations.cluster.errors import ClusterUnavailable

IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
SUPPORTED_KEYS = {
    "user": {"token", "tokenFile"},
    "cluster": {"server", "certificate-authority", "certificate-authority-data"},
}


@dataclass(frozen=True)
class Access:
    """The address and credentials of an API server.

    ``ca`` is in PEM, "" for the system's authorities. ``token`` returns the current token.
    """

    server: str
    ca: str
    token: Callable[[], str]


class TokenFile:
    """A token in a file, which is read again when the file changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._changed_at = -1.0
        self._token = ""

    def __call__(self) -> str:
        changed_at = self.path.stat().st_mtime
        if changed_at != self._changed_at:
            self._token = self.path.read_text(encoding="utf-8").strip()
            self._changed_at = changed_at
        return self._token


def from_kubeconfig(path: Path) -> Access:
    """Return the server, CA and token of the file's current context.

    Raises ValueError, which names the keys, if the context has no token or has unsupported keys.
    """
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    context = _entry(content, "contexts", content["current-context"])["context"]
    entries = {kind: _entry(content, f"{kind}s", context[kind])[kind] for kind in SUPPORTED_KEYS}
    unknown = sorted(key for kind, supported in SUPPORTED_KEYS.items() for key in set(entries[kind]) - supported)
    if unknown or not entries["user"]:
        problem = f"remove {', '.join(unknown)}" if unknown else "it has no token"
        raise ValueError(f"{path.name}: only server, certificate authority, token or tokenFile are used; {problem}")
    cluster, user = entries["cluster"], entries["user"]
    ca = ""
    if data := cluster.get("certificate-authority-data"):
        ca = base64.b64decode(data).decode()
    elif file := cluster.get("certificate-authority"):
        ca = (path.parent / file).read_text(encoding="utf-8")
    token = TokenFile(path.parent / user["tokenFile"]) if "tokenFile" in user else lambda: user["token"]
    return Access(cluster["server"], ca, token)


def _entry(content: dict[str, Any], section: str, name: str) -> dict[str, dict[str, str]]:
    entry: dict[str, dict[str, str]] = next(each for each in content[section] if each["name"] == name)
    return entry


def in_cluster() -> Access:
    """Return the access of the pod's service account. Raises ClusterUnavailable outside a cluster."""
    if "KUBERNETES_SERVICE_HOST" not in environ:
        raise ClusterUnavailable("no cluster is named: set KUBECONFIG")
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Access(server, (IN_CLUSTER / "ca.crt").read_text(encoding="utf-8"), TokenFile(IN_CLUSTER / "token"))
