"""The API server over HTTP with one person's credentials: every answer with its status, also a refusal."""

import json
from collections.abc import Callable, Mapping
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
"""Where the objects are that tenants make, by kind; the name follows."""


class Answer(NamedTuple):
    status: int
    body: Object

    @property
    def message(self) -> str:
        """What the API server says of a refusal; empty when there is none."""
        return str(self.body.get("message", "")) if self.status >= 400 else ""


class ApiClient:
    """Keep-alive connections for one person; threads may share it."""

    def __init__(self, home: Home, token: Callable[[], str] | None = None) -> None:
        """With the token that the person has at each call; as the local administrator without one."""
        certs = home.certs
        self._server, self._token = home.apiserver, token
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
        headers = {"Accept": "application/json", "Content-Type": content_type}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token()}"
        answer = self._pool.request(method, url, body=data, headers=headers)
        return Answer(answer.status, json.loads(answer.data))

    def items(self, path: str, **query: str) -> list[Object]:
        """The objects of a list; AssertionError with the API server's words when it is refused."""
        answer = self.call("GET", path, query=query)
        assert answer.status == 200, f"GET {path}: {answer.status} {answer.message}"
        return list(answer.body["items"] or ())
