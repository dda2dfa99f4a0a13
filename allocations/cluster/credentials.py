"""A person's own way into the cluster: a short-lived token of their service account, and the kubeconfig around it."""

import base64
from dataclasses import dataclass
from datetime import datetime

import yaml

from allocations.cluster import names
from allocations.cluster.client import Client

MIN_TTL_S, MAX_TTL_S = 600, 3600
"""The API server gives no token for less than ten minutes; the portal none for more than an hour."""


@dataclass(frozen=True)
class PersonToken:
    token: str
    expires_at: datetime


def mint(client: Client, username: str, ttl_s: int) -> PersonToken:
    """A bound token of the person by TokenRequest (authentication.k8s.io/v1).

    Raises ClusterRefused (404 while the person has no service account) and ClusterUnavailable.
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


def kubeconfig(client: Client, server: str, username: str, namespace: str, token: str) -> str:
    """A kubeconfig that stands alone: ``server`` (default: the portal's), its CA, the token, and the namespace."""
    where: dict[str, str] = {"server": server or client.access.server}
    if client.access.ca:
        where["certificate-authority-data"] = base64.b64encode(client.access.ca.encode()).decode()
    person, cluster = names.person(username), client.cluster
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": where}],
        "users": [{"name": person, "user": {"token": token}}],
        "contexts": [{"name": namespace, "context": {"cluster": cluster, "user": person, "namespace": namespace}}],
        "current-context": namespace,
    }
    return yaml.safe_dump(content, sort_keys=False)
