"""How to reach the API server: server, CA and token, of a kubeconfig or of the pod's service account.

Nothing else of a kubeconfig is used: an ``exec`` or ``auth-provider`` entry would run a program of whoever wrote the
file, so a file that asks for more is refused. A token file is read again when it changes, since bound tokens live for
an hour at most.
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
USED = {"user": {"token", "tokenFile"}, "cluster": {"server", "certificate-authority", "certificate-authority-data"}}


@dataclass(frozen=True)
class Access:
    """``ca`` in PEM, empty for the system's authorities. ``token`` gives the one that is good now."""

    server: str
    ca: str
    token: Callable[[], str]


class TokenFile:
    """The token in a file, read again when the file changes."""

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
    """Server, CA and token of the file's current context; ValueError names what else it asks for."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    context = _named(content, "contexts", content["current-context"])["context"]
    found = {kind: _named(content, f"{kind}s", context[kind])[kind] for kind in USED}
    unknown = sorted(key for kind, used in USED.items() for key in set(found[kind]) - used)
    if unknown or not found["user"]:
        what = f"remove {', '.join(unknown)}" if unknown else "it has no token"
        raise ValueError(f"{path.name}: only server, certificate authority, token or tokenFile are used; {what}")
    cluster, user = found["cluster"], found["user"]
    ca = ""
    if data := cluster.get("certificate-authority-data"):
        ca = base64.b64decode(data).decode()
    elif file := cluster.get("certificate-authority"):
        ca = (path.parent / file).read_text(encoding="utf-8")
    token = TokenFile(path.parent / user["tokenFile"]) if "tokenFile" in user else lambda: user["token"]
    return Access(cluster["server"], ca, token)


def _named(content: dict[str, Any], section: str, name: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = next(entry for entry in content[section] if entry["name"] == name)
    return found


def in_cluster() -> Access:
    """As the pod's service account; ClusterUnavailable outside a cluster."""
    if "KUBERNETES_SERVICE_HOST" not in environ:
        raise ClusterUnavailable("no cluster is named: set KUBECONFIG")
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Access(server, (IN_CLUSTER / "ca.crt").read_text(encoding="utf-8"), TokenFile(IN_CLUSTER / "token"))
