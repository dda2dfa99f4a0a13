"""A client of the API server: plain JSON objects over HTTP, with the credentials of a kubeconfig only."""

import base64
import json
import ssl
import tempfile
from pathlib import Path
from typing import Any

import urllib3
import yaml

Object = dict[str, Any]

METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
MERGE_PATCH = "application/merge-patch+json"


class ApiError(Exception):
    """A request that the API server refused, with HTTP status and message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status = status


class Api:
    """A client for one server address; every method returns the decoded answer or raises ApiError."""

    def __init__(self, kubeconfig: Path) -> None:
        cluster, user = _current(yaml.safe_load(kubeconfig.read_text()))
        self._server = cluster["server"].rstrip("/")
        token = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        self._http = urllib3.PoolManager(
            ssl_context=_tls(cluster, user, kubeconfig.parent),
            headers={"User-Agent": "simulated-fleet"} | token,
            timeout=urllib3.Timeout(connect=2, read=10),
            retries=False,
        )

    def get(self, path: str) -> Object:
        return self._send("GET", path)

    def list_metadata(self, path: str) -> list[Object]:
        """Return each object without spec and status, so that the answer is small however large the objects are."""
        # An empty list is encoded as null.
        items: list[Object] = self._send("GET", path, accept=METADATA_ONLY)["items"] or []
        return items

    def create(self, path: str, body: Object) -> Object:
        return self._send("POST", path, body)

    def replace(self, path: str, body: Object) -> Object:
        return self._send("PUT", path, body)

    def merge(self, path: str, body: Object) -> Object:
        return self._send("PATCH", path, body, content_type=MERGE_PATCH)

    def delete(self, path: str) -> Object:
        return self._send("DELETE", path)

    def _send(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        accept: str = "application/json",
        content_type: str = "application/json",
    ) -> Object:
        headers = {**self._http.headers, "Accept": accept, "Content-Type": content_type}
        data = None if body is None else json.dumps(body).encode()
        answer = self._http.request(method, self._server + path, body=data, headers=headers)
        content: Object = json.loads(answer.data)
        if answer.status >= 400:
            raise ApiError(answer.status, content.get("message", ""))
        return content


def _current(config: Object) -> tuple[Object, Object]:
    name = config["current-context"]
    context = next(entry["context"] for entry in config["contexts"] if entry["name"] == name)
    cluster = next(entry["cluster"] for entry in config["clusters"] if entry["name"] == context["cluster"])
    user = next(entry["user"] for entry in config["users"] if entry["name"] == context["user"])
    return cluster, user


def _tls(cluster: Object, user: Object, folder: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=_pem(cluster, "certificate-authority", folder))
    certificate, key = _pem(user, "client-certificate", folder), _pem(user, "client-key", folder)
    if certificate and key:
        # ssl reads a client's key pair from files only.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:
            pair.write(f"{certificate}\n{key}")
            pair.flush()
            context.load_cert_chain(pair.name)
    return context


def _pem(entry: Object, field: str, folder: Path) -> str | None:
    """Return a certificate or key, given inline or as a file name relative to the kubeconfig."""
    if f"{field}-data" in entry:
        return base64.b64decode(entry[f"{field}-data"]).decode()
    return (folder / entry[field]).read_text() if field in entry else None
