"""An HTTP client of the API server with one person's credentials, which returns every answer, including refusals."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlencode

import urllib3

from deploy.local.home import Home

Object = dict[str, Any]
MERGE_PATCH = "application/merge-patch+json"
NAMESPACED = {
    "Pod": "/api/v1/namespaces/{}/pods",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
}
"""Collections of the objects that tenants create, by kind; the name is appended."""


class Answer(NamedTuple):
    status: int
    body: Object

    @property
    def message(self) -> str:
        """Return the API server's message of a refusal, or an empty text."""
        return str(self.body.get("message", "")) if self.status >= 400 else ""


class ApiClient:
    """A keep-alive client of one person, safe to share between threads."""

    def __init__(self, home: Home, token: Callable[[], str] | None = None) -> None:
        """Use the token that ``token`` returns at each call; without one act as the local administrator."""
        certs = home.certs
        self._server, self._token = home.apiserver, token
        self._kinds: dict[str, dict[str, Object]] = {}
        self._pool = urllib3.PoolManager(
            ca_certs=str(certs / "ca.crt"),
            cert_file=None if token else str(certs / "admin.crt"),
            key_file=None if token else str(certs / "admin.key"),
            maxsize=4,
            retries=False,
            timeout=30,
        )

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        url = f"{self._server}{path}?{urlencode(query)}" if query else f"{self._server}{path}"
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": content_type, **self._headers()}
        answer = self._pool.request(method, url, body=data, headers=headers)
        return Answer(answer.status, json.loads(answer.data))

    def create(self, manifest: Object, namespace: str, *, dry_run: bool = False) -> Answer:
        """Create the object in its own namespace, else in this one, as kubectl does: unknown fields are refused."""
        namespace = manifest["metadata"].get("namespace", namespace)
        path = self._collection(manifest["apiVersion"], manifest["kind"], namespace)
        query = {
            "fieldManager": "kubectl-create",
            "fieldValidation": "Strict",
            **({"dryRun": "All"} if dry_run else {}),
        }
        return self.call("POST", path, manifest, query)

    def _collection(self, api_version: str, kind: str, namespace: str) -> str:
        """Return the path of a kind's objects, by the API server's discovery, which is asked once for each version."""
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        if api_version not in self._kinds:
            listed = self.call("GET", root).body.get("resources", [])
            self._kinds[api_version] = {one["kind"]: one for one in listed if "/" not in one["name"]}
        found = self._kinds[api_version][kind]
        return f"{root}/namespaces/{namespace}/{found['name']}" if found["namespaced"] else f"{root}/{found['name']}"

    def _headers(self) -> dict[str, str]:
        return {"Accept": "application/json", **({"Authorization": f"Bearer {self._token()}"} if self._token else {})}

    @contextmanager
    def watching(self, path: str, name: str, within_s: int) -> Iterator[Iterator[Object]]:
        """Yield the events of one object of a collection, from what exists now on, for at most so many seconds."""
        query = {"watch": "true", "fieldSelector": f"metadata.name={name}", "timeoutSeconds": str(within_s)}
        url = f"{self._server}{path}?{urlencode(query)}"
        answer = self._pool.request("GET", url, headers=self._headers(), preload_content=False)
        assert answer.status == 200, f"watch {path}: {answer.status}"
        try:
            yield map(json.loads, answer)
        finally:
            answer.close()

    def items(self, path: str, **query: str) -> list[Object]:
        """Return the objects of a list; raise AssertionError with the API server's message if it is refused."""
        answer = self.call("GET", path, query=query)
        assert answer.status == 200, f"GET {path}: {answer.status} {answer.message}"
        return list(answer.body["items"] or ())
