"""A person's credentials for the cluster: a short-lived token of their service account, and a kubeconfig."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allocations.cluster import names
from allocations.cluster.client import Client
from portal.yaml_text import to_yaml

MIN_TTL_S, MAX_TTL_S = 600, 3600
"""The API server issues no token for less than ten minutes; the portal none for more than an hour."""


@dataclass(frozen=True)
class PersonToken:
    """A token of a person's service account."""

    token: str
    expires_at: datetime


def mint(client: Client, username: str, ttl_s: int) -> PersonToken:
    """Return a new bound token of the person, by TokenRequest (authentication.k8s.io/v1).

    ``ttl_s`` is limited to 10 to 60 minutes. Raises ClusterRefused (404 while the person has no service account) and
    ClusterUnavailable.
    """
    seconds = max(MIN_TTL_S, min(ttl_s, MAX_TTL_S))
    answer = client.json(
        "POST",
        f"/api/v1/namespaces/{names.PEOPLE_NAMESPACE}/serviceaccounts/{names.person(username)}/token",
        body={
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        },
    )
    expires_at = datetime.fromisoformat(answer["status"]["expirationTimestamp"])
    return PersonToken(answer["status"]["token"], expires_at)


def by_plugin(cluster: str) -> dict[str, Any]:
    """Return the user entry of a kubeconfig without a token: kubectl runs `gpu-portal credential` for one."""
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "gpu-portal",
            "args": ["credential", "--cluster", cluster],
            "interactiveMode": "Never",
            "provideClusterInfo": False,
            "installHint": "kubectl asks the GPU portal for a token by the command gpu-portal. Install it "
            "as the portal's docs say (/docs/how-to/install-the-command.html), then run `gpu-portal login`.",
        }
    }


def kubeconfig(client: Client, server: str, username: str, namespace: str, user: Mapping[str, Any]) -> str:
    """Return a kubeconfig with the namespace. ``user`` is how to sign in: ``{"token": …}`` or ``by_plugin``.

    ``server`` is the address to use; "" for the address that the portal uses.
    """
    entry: dict[str, str] = {"server": server or client.access.server}
    if client.access.ca:
        entry["certificate-authority-data"] = base64.b64encode(client.access.ca.encode()).decode()
    person, cluster = names.person(username), client.cluster
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": entry}],
        "users": [{"name": person, "user": dict(user)}],
        "contexts": [{"name": namespace, "context": {"cluster": cluster, "user": person, "namespace": namespace}}],
        "current-context": namespace,
    }
    return to_yaml(content)
