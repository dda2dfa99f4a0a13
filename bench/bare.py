"""The bare client: the same objects from the same builders, in the same order, without any other work.

It uses urllib3 and one thread, with keep-alive connections and a watch, opened beforehand, for each result it waits
for. Its namespace is configured like a project's, so the same policies, quotas and queue take part. Its objects lack
only the label by which the portal's watcher would record them as the portal's own.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import urllib3

from allocations.cluster import names
from allocations.cluster.backends import registry
from allocations.cluster.kinds import KINDS
from allocations.cluster.manifests import hold_quota, lease
from allocations.cluster.manifests import project as shared
from allocations.domain.objects import Manifest, Ref, ResolvedSpec, Snapshot
from deploy.local.home import Home

Raw = dict[str, Any]
WITHIN_S = 30
APPLY = {"fieldManager": names.FIELD_MANAGER, "force": "true", "fieldValidation": "Strict"}


class Api:
    """A client of the API server by urllib3 only, with the portal's token, or as the local administrator."""

    def __init__(self, home: Home, *, as_admin: bool = False, connections: int = 8) -> None:
        certificate = (str(home.certs / "admin.crt"), str(home.certs / "admin.key")) if as_admin else (None, None)
        self._pool = urllib3.HTTPSConnectionPool(
            "127.0.0.1",
            home.ports["apiserver"],
            maxsize=connections,
            ca_certs=str(home.certs / "ca.crt"),
            cert_file=certificate[0],
            key_file=certificate[1],
            retries=False,
            timeout=urllib3.Timeout(connect=3, read=WITHIN_S),
        )
        self._token = None if as_admin else home.portal_token

    def call(self, method: str, path: str, body: Raw | None = None, **query: str) -> Raw:
        """Return the answer as JSON; raise RuntimeError with the server's message for an error."""
        response = self._request(method, path, body, query)
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {response.data.decode()[:500]}")
        answer: Raw = response.json()
        return answer

    def watch(self, path: str, revision: str, within_s: int = WITHIN_S) -> urllib3.BaseHTTPResponse:
        query = {"watch": "true", "resourceVersion": revision, "timeoutSeconds": str(within_s)}
        return self._request("GET", path, None, query, preload_content=False)

    def _request(
        self, method: str, path: str, body: Raw | None, query: dict[str, str], *, preload_content: bool = True
    ) -> urllib3.BaseHTTPResponse:
        headers = {"Content-Type": "application/apply-patch+yaml" if method == "PATCH" else "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token.read_text().strip()}"
        return self._pool.request(
            method,
            f"{path}?{urlencode(query)}" if query else path,
            body=json.dumps(body) if body is not None else None,
            headers=headers,
            preload_content=preload_content,
        )


@dataclass(frozen=True)
class Bare:
    api: Api
    project: shared.ProjectFacts

    def prepare(self) -> None:
        """Create a namespace with everything a project has; only the Namespace itself has the label of managed
        ones.
        """
        for manifest in shared.build(self.project):
            if manifest["kind"] == "Namespace":
                self._patch(manifest)
        for manifest in shared.build(self.project):
            if manifest["kind"] != "Namespace":
                self.apply(manifest)

    def hold(self, spec: ResolvedSpec) -> float:
        """Return the seconds from the first write until the cluster shows the slices held."""
        with ExitStack() as stack:
            watches = {kind: self._watch(kind) for kind in self._awaited(spec)}
            for watch in watches.values():
                stack.callback(watch.close)
            start = time.perf_counter()
            self.apply(lease.build(spec))
            _wait(watches["Workload"], names.lease(spec.name), is_admitted)
            for manifest in (
                self.quota(spec, held=True),
                *registry.backend_of(spec).objects(spec, Snapshot()),
            ):
                self.apply(manifest)
            if spec.path == "dra":
                _wait(watches["ResourceClaim"], names.claim(spec.name), is_allocated)
                _wait(watches["Pod"], names.holder(spec.name), is_running)
            _wait(watches["ResourceQuota"], names.hold_slot(spec.number), follows)
            self.guard(spec)
            held = time.perf_counter() - start
        self.pods_ready(spec)
        return held

    def release(self, spec: ResolvedSpec) -> None:
        """Delete everything and wait until it is gone."""
        self.guard()
        self.apply(self.quota(spec, held=False))
        groups = [*registry.backend_of(spec).leftovers(spec), [lease.ref(spec)]]
        for ref in (ref for group in groups for ref in group):
            path = KINDS[ref.kind].path(ref.namespace, ref.name)
            self.api.call("DELETE", path)
            deadline = time.monotonic() + WITHIN_S
            while self.api.call("GET", KINDS[ref.kind].path(ref.namespace), fieldSelector=f"metadata.name={ref.name}")[
                "items"
            ]:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{ref} is not gone")
                time.sleep(0.05)

    def _awaited(self, spec: ResolvedSpec) -> tuple[str, ...]:
        own = ("ResourceClaim", "Pod") if spec.path == "dra" else ()
        return ("Workload", "ResourceQuota", *own)

    def guard(self, *held: ResolvedSpec) -> None:
        """Apply the GpuProject that lists these allocations."""
        guards = {spec.name: registry.backend_of(spec).guard_entry(spec) for spec in held}
        self.apply(shared.gpu_project(replace(self.project, guards=guards)))

    def quota(self, spec: ResolvedSpec, *, held: bool) -> Manifest:
        assert spec.number is not None
        hold = hold_quota.hold(spec, registry.backend_of(spec).quota(spec)) if held else None
        return hold_quota.build(spec.namespace, spec.number, shared.labels(self.project), hold, self.project.resources)

    def apply(self, manifest: Manifest) -> None:
        metadata = manifest["metadata"]
        labels = {k: v for k, v in metadata["labels"].items() if k != names.MANAGED}
        self._patch({**manifest, "metadata": {**metadata, "labels": labels}})

    def _patch(self, manifest: Manifest, subresource: str = "") -> None:
        ref = Ref.of_manifest(manifest)
        self.api.call("PATCH", KINDS[ref.kind].path(ref.namespace, ref.name, subresource), manifest, **APPLY)

    def pods_ready(self, spec: ResolvedSpec) -> None:
        condition = {
            "type": "PodsReady",
            "status": "True",
            "reason": "Held",
            "message": "The slices are assigned.",
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        metadata = {"name": names.lease(spec.name), "namespace": spec.namespace}
        version = KINDS["Workload"].api_version
        status = {"conditions": [condition]}
        self._patch({"apiVersion": version, "kind": "Workload", "metadata": metadata, "status": status}, "status")

    def _watch(self, kind: str) -> urllib3.BaseHTTPResponse:
        path = KINDS[kind].path(self.project.namespace)
        return self.api.watch(path, self.api.call("GET", path, limit="1")["metadata"]["resourceVersion"])


def _wait(watch: urllib3.BaseHTTPResponse, name: str, holds: Callable[[Raw], bool]) -> None:
    for event in events(watch):
        raw = event["object"]
        if raw["metadata"]["name"] == name and event["type"] != "DELETED" and holds(raw):
            return
    raise TimeoutError(f"{name} is not as awaited after {WITHIN_S} s")


def events(response: urllib3.BaseHTTPResponse) -> Iterator[Raw]:
    buffer = b""
    while chunk := response.read1(65536):
        *lines, buffer = (buffer + chunk).split(b"\n")
        for line in lines:
            yield json.loads(line)


def is_admitted(raw: Raw) -> bool:
    conditions = raw.get("status", {}).get("conditions", ())
    return any(c["type"] == "Admitted" and c["status"] == "True" for c in conditions)


def is_allocated(raw: Raw) -> bool:
    return "allocation" in raw.get("status", {})


def is_running(raw: Raw) -> bool:
    return bool(raw.get("status", {}).get("phase") == "Running")


def follows(raw: Raw) -> bool:
    """Return whether the quota's status matches its spec."""
    return bool(raw.get("status", {}).get("hard") == raw["spec"]["hard"])
