"""The kubeconfig files of a home: one per identity, so that each process has only its own permissions."""

import base64
from pathlib import Path
from typing import Any

import yaml

from deploy.local.home import Home

IDENTITIES = ("controller-manager", "scheduler", "kueue", "webhook", "hardware")


def write_kubeconfigs(home: Home) -> None:
    """Write the administrator's kubeconfig, the portal's (with a token file), and one per component."""
    _write(home.kubeconfig, home, _certificate(home, "admin"))
    _write(home.portal_kubeconfig, home, {"tokenFile": str(home.portal_token)})
    for identity in IDENTITIES:
        _write(component_kubeconfig(home, identity), home, _certificate(home, identity))


def component_kubeconfig(home: Home, identity: str) -> Path:
    return home.root / f"{identity}.kubeconfig"


def _certificate(home: Home, name: str) -> dict[str, str]:
    """Return the certificate as embedded data, so that a copied file works."""
    return {
        "client-certificate-data": _base64(home.certs / f"{name}.crt"),
        "client-key-data": _base64(home.certs / f"{name}.key"),
    }


def _write(path: Path, home: Home, user: dict[str, Any]) -> None:
    cluster = {"server": home.apiserver, "certificate-authority-data": _base64(home.certs / "ca.crt")}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": cluster}],
        "users": [{"name": "local", "user": user}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local"}}],
        "current-context": "local",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config, sort_keys=False))


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
