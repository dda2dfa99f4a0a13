"""An HTTP client of the API server with one person's credentials, which returns every answer, including refusals."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlencode

import urllib3

from deploy.local.home import Home
from tests.support.cluster import kinds
from tests.support.cluster.kinds import Kind

Object = dict[str, Any]
PORTAL = "system:serviceaccount:gpu-portal:portal"
"""The portal's own user, which the guards let create what they refuse of people."""
APPLY_PATCH = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
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
    warnings: str = ""
    """The API server's warnings."""

    @property
    def message(self) -> str:
        """Return the API server's message of a refusal, or an empty text."""
        return str(self.body.get("message", "")) if self.status >= 400 else ""

    @property
    def granted(self) -> Object:
        """Return the body; raise AssertionError with the API server's message if it refused."""
        assert self.status < 400, f"{self.status} {self.message}"
        return self.body


class ApiClient:
    """A keep-alive client of one person, safe to share between threads."""

    def __init__(self, home: Home, token: Callable[[], str] | None = None, acting_as: str = "") -> None:
        """Use the token that ``token`` returns at each call; without one act as the local administrator, or as the user
        ``acting_as`` by impersonation.
        """
        certs = home.certs
        self._server, self._token, self._acting_as = home.apiserver, token, acting_as
        self._kinds: list[Kind] = []
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
        answer = self._request(method, path, body, query, {"Content-Type": content_type})
        warnings = [line.removeprefix('299 - "')[:-1] for line in answer.headers.getlist("Warning")]
        return Answer(answer.status, json.loads(answer.data), " ".join(warnings).replace('\\"', '"'))

    def text(self, path: str) -> str:
        """Return what is at a path, as text."""
        answer = self._request("GET", path)
        assert answer.status == 200, f"GET {path}: {answer.status} {answer.data.decode()[:500]}"
        return answer.data.decode()

    def find(self, kind: str, name: str, namespace: str = "") -> Object:
        """Return the object, or an empty one if there is none. Kinds are named as for kubectl."""
        answer = self.call("GET", self.kind(kind).path(namespace, name))
        return {} if answer.status == 404 else answer.granted

    def get(self, kind: str, name: str, namespace: str = "") -> Object:
        """Return the object; raise AssertionError if there is none."""
        return self.call("GET", self.kind(kind).path(namespace, name)).granted

    def objects(self, names: str, namespace: str = "", labels: str = "", fields: str = "") -> list[Object]:
        """Return the objects of kinds separated by commas, each with its kind, of all namespaces if none is given."""
        chosen = {"labelSelector": labels, "fieldSelector": fields}
        query = {key: value for key, value in chosen.items() if value}
        return [
            {"apiVersion": kind.api_version, "kind": kind.name, **item}
            for kind in map(self.kind, names.split(","))
            for item in self.items(kind.path(namespace), **query)
        ]

    def create(self, manifest: Object, namespace: str, *, dry_run: bool = False) -> Answer:
        """Create the object in its own namespace, else in this one, as kubectl does: unknown fields are refused."""
        query = {
            "fieldManager": "kubectl-create",
            "fieldValidation": "Strict",
            **({"dryRun": "All"} if dry_run else {}),
        }
        return self.call("POST", self._collection(manifest, namespace), manifest, query)

    def created(self, manifest: Object, namespace: str = "default") -> Object:
        """Create the object; raise AssertionError if it is refused."""
        return self.create(manifest, namespace).granted

    def apply(self, manifest: Object, namespace: str = "default", manager: str = "test") -> Object:
        """Apply the object server-side; raise AssertionError if it is refused."""
        path = f"{self._collection(manifest, namespace)}/{manifest['metadata']['name']}"
        query = {"fieldManager": manager, "fieldValidation": "Strict", "force": "true"}
        return self.call("PATCH", path, manifest, query, APPLY_PATCH).granted

    def patch(self, kind: str, name: str, namespace: str = "", body: object = None, *, of: str = MERGE_PATCH) -> Object:
        """Patch the object; raise AssertionError if it is refused. ``of`` is the type of the patch."""
        return self.call("PATCH", self.kind(kind).path(namespace, name), body, content_type=of).granted

    def delete(self, kind: str, name: str, namespace: str = "", **options: object) -> Answer:
        """Delete the object, whose dependents follow; raise AssertionError if that is refused. One that is gone may
        be deleted.
        """
        path = self.kind(kind).path(namespace, name)
        answer = self.call("DELETE", path, {"propagationPolicy": "Background", **options})
        assert answer.status in (200, 202, 404), f"DELETE {path}: {answer.status} {answer.message}"
        return answer

    def token(self, account: str, namespace: str) -> str:
        """Return a token of the service account for an hour."""
        path = f"{self.kind('serviceaccount').path(namespace, account)}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        return str(self.call("POST", path, body).granted["status"]["token"])

    def kind(self, name: str, api_version: str = "") -> Kind:
        """Return the kind of this name; raise AssertionError if the API server has none."""
        found = kinds.find(self._kinds, name, api_version)
        if found is None:
            headers = {"Accept": kinds.ACCEPT}
            documents = [json.loads(self._request("GET", root, headers=headers).data) for root in kinds.ROOTS]
            self._kinds = list(kinds.read(documents))
            found = kinds.find(self._kinds, name, api_version)
        assert found, f"the API server has no kind {name}"
        return found

    def all_kinds(self) -> list[Kind]:
        """Return all kinds that there are."""
        self.kind("namespace")
        return self._kinds

    def _collection(self, manifest: Object, namespace: str) -> str:
        kind = self.kind(manifest["kind"], manifest["apiVersion"])
        return kind.path(manifest["metadata"].get("namespace", namespace))

    def _request(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> urllib3.BaseHTTPResponse:
        url = f"{self._server}{path}?{urlencode(query)}" if query else f"{self._server}{path}"
        data = None if body is None else json.dumps(body).encode()
        return self._pool.request(method, url, body=data, headers={**self._headers(), **(headers or {})})

    def _headers(self) -> dict[str, str]:
        token = {"Authorization": f"Bearer {self._token()}"} if self._token else {}
        impersonated = {"Impersonate-User": self._acting_as} if self._acting_as else {}
        return {"Accept": "application/json", **token, **impersonated}

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
