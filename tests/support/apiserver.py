"""Request counts of the API server, which are evidence that a client's own counts are not.

``apiserver_request_total`` has verb and resource, but not the client. The FlowSchemas ``OWN`` take the portal's
requests out of the schema of all service accounts, at the same priority level: what they dispatched is the portal's.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import urllib3

from deploy.local.home import Home

PORTAL = {"kind": "ServiceAccount", "serviceAccount": {"namespace": "gpu-portal", "name": "portal"}}
REACH = {"apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}


def _own(name: str, precedence: int, verbs: list[str]) -> dict[str, Any]:
    rule = {"subjects": [PORTAL], "resourceRules": [{**REACH, "verbs": verbs}]}
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": name},
        "spec": {
            "priorityLevelConfiguration": {"name": "workload-low"},
            "matchingPrecedence": precedence,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [rule],
        },
    }


OWN_WRITES, OWN_GETS = "test-portal-writes", "test-portal-gets"
OWN = [
    _own(OWN_WRITES, 8001, ["create", "update", "patch", "delete", "deletecollection"]),
    _own(OWN_GETS, 8002, ["get"]),
]
FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
DISPATCHED = re.compile(r"^apiserver_flowcontrol_dispatched_requests_total\{([^}]*)\} (\S+)$", re.MULTILINE)
LINE = re.compile(r"^apiserver_request_total\{(?P<labels>[^}]*)\} (?P<value>\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Request(NamedTuple):
    """A series of the metric, with the labels that tests need; ``resource`` is ``plural`` or
    ``plural/subresource``. A PATCH that is a server-side apply has the verb APPLY.
    """

    verb: str
    resource: str
    code: str


class ApiServer:
    """The metrics of a local cluster's API server, read as its administrator."""

    def __init__(self, home: Home) -> None:
        self._home = home

    @cached_property
    def _pool(self) -> urllib3.PoolManager:
        certs = self._home.certs
        return urllib3.PoolManager(
            ca_certs=str(certs / "ca.crt"),
            cert_file=str(certs / "admin.crt"),
            key_file=str(certs / "admin.key"),
            retries=False,
            timeout=30,
        )

    @contextmanager
    def counting_own(self) -> Iterator["ApiServer"]:
        """Count the portal's own requests separately (``own``) until the block ends."""
        paths = [f"{FLOWS}/{schema['metadata']['name']}" for schema in OWN]
        for path, schema in zip(paths, OWN, strict=True):
            self._as_admin("PATCH", f"{path}?fieldManager=test&force=true", json.dumps(schema))
        before, deadline = self.own(OWN_GETS), time.monotonic() + 30
        while self.own(OWN_GETS) == before:
            if time.monotonic() > deadline:
                raise TimeoutError("the FlowSchemas do not act")
            self._as_portal("/api/v1/namespaces/gpu-portal")
        yield self
        for path in paths:
            self._as_admin("DELETE", path)

    def _as_admin(self, method: str, path: str, body: str | None = None) -> None:
        headers = {"Content-Type": "application/apply-patch+yaml"} if body else {}
        answer = self._pool.request(method, f"{self._home.apiserver}{path}", body=body, headers=headers)
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.data.decode()[:500]}")

    def _as_portal(self, path: str) -> None:
        headers = {"Authorization": f"Bearer {self._home.portal_token.read_text().strip()}"}
        with urllib3.PoolManager(ca_certs=str(self._home.certs / "ca.crt"), retries=False) as pool:
            pool.request("GET", f"{self._home.apiserver}{path}", headers=headers)

    def _metrics(self) -> str:
        return self._pool.request("GET", f"{self._home.apiserver}/metrics").data.decode()

    def own(self, schema: str) -> int:
        """Return the portal's requests that a FlowSchema of ``OWN`` dispatched."""
        series = ((dict(LABEL.findall(labels)), value) for labels, value in DISPATCHED.findall(self._metrics()))
        return sum(int(float(value)) for labels, value in series if labels["flow_schema"] == schema)

    def counts(self) -> Counter[Request]:
        """Return the requests answered since the server started."""
        found: Counter[Request] = Counter()
        for line in LINE.finditer(self._metrics()):
            labels = dict(LABEL.findall(line["labels"]))
            plural, subresource = labels["resource"], labels["subresource"]
            resource = f"{plural}/{subresource}" if subresource else plural
            found[Request(labels["verb"], resource, labels["code"])] += int(float(line["value"]))
        return found
