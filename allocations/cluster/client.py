"""A client of the Kubernetes API: raw JSON over the official client's connection pool.

Typed models are not used: they are slow, and drop fields that they do not know.
"""

import functools
import json
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import urllib3
from django.conf import settings
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from allocations.cluster import access, names
from allocations.cluster.clock_skew import SkewMeter
from allocations.cluster.errors import ClusterRefused, ClusterStoreFull, ClusterUnavailable
from allocations.cluster.kinds import KINDS, Kind
from allocations.domain.etcd_usage import STORE_FULL
from allocations.domain.objects import Manifest, Ref
from portal.clusters import registry
from portal.core import clock

CONNECTIONS = 40
"""Connections kept alive per process. The watcher needs one for each kind."""
TIMEOUT_S = (3.0, 10.0)
WATCH_S = 10
"""Duration of one watch request. Its normal end shows that the connection works, so a dead connection is detected
within this time, and the last observation before an outage is at most this old."""
PAGE = 500
APPLY = "application/apply-patch+yaml"
Item = TypeVar("Item")
RETRYABLE_STATUSES = frozenset({401, 409, 429, 500, 502, 503, 504})
POLICY_NOT_LOADED = re.compile(r"""policy ["']gpu-portal-.* denied request: failed to configure""", re.IGNORECASE)
"""The error of an API server that has just started and has not loaded the parameters of the portal's policies yet. It
lasts up to 30 s."""

NUL = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")
"""A NUL character in JSON; after another backslash ``\\u0000`` is text."""


@functools.cache
def connect(cluster: str) -> "Client":
    """Return the client of a cluster, one per process, so that connections are kept alive.

    Raises ClusterUnavailable if the environment has no credentials for the cluster.
    """
    if cluster != registry.own():
        raise ClusterUnavailable(f"this process has no credentials for cluster {cluster}: CLUSTER_NAME names another")
    reach = access.from_kubeconfig(Path(settings.KUBECONFIG)) if settings.KUBECONFIG else access.in_cluster()
    return Client(cluster, reach)


class Client:
    """A client of one cluster's API server."""

    def __init__(self, cluster: str, reach: access.Access) -> None:
        self.cluster = cluster
        self.access = reach
        self.skew = SkewMeter()
        configuration = Configuration()
        configuration.host = reach.server
        configuration.refresh_api_key_hook = self._set_token
        self._set_token(configuration)  # the client calls the hook only if it has a token already
        self._api = ApiClient(configuration)
        # The client's own pool reads a CA only from a file.
        context = ssl.create_default_context(cadata=reach.ca or None)
        self._api.rest_client.pool_manager = urllib3.PoolManager(
            maxsize=CONNECTIONS, retries=False, ssl_context=context
        )

    def _set_token(self, configuration: Configuration) -> None:
        configuration.api_key["BearerToken"] = f"Bearer {self.access.token()}"

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        content_type: str = "application/json",
        timeout: tuple[float, float] = TIMEOUT_S,
    ) -> urllib3.BaseHTTPResponse:
        """Send one request. Raises ClusterUnavailable (retryable) or ClusterRefused (with the API server's message)."""
        try:
            response: urllib3.BaseHTTPResponse = self._api.call_api(
                path,
                method,
                query_params=list((query or {}).items()),
                header_params={"Accept": "application/json", "Content-Type": content_type},
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _return_http_data_only=True,
                _request_timeout=timeout,
            )
            return response
        except ApiException as error:
            raise _as_cluster_error(error) from error
        except (HTTPError, OSError) as error:
            raise ClusterUnavailable(f"{method} {path}: {error}") from error

    def json(self, method: str, path: str, **kwargs: Any) -> dict[str, Any]:
        """Send one request and return the JSON object of its response. Raises what ``request`` raises."""
        response = self.request(method, path, **kwargs)
        try:
            body: dict[str, Any] = decoded(response.data)
            return body
        except (HTTPError, OSError) as error:
            raise ClusterUnavailable(f"{method} {path}: {error}") from error
        finally:
            response.release_conn()

    def lines(self, path: str) -> Iterator[bytes]:
        """Yield the lines of a response that is not JSON, such as metrics, without loading all of it into memory."""
        response = self.request("GET", path, timeout=(3.0, 20.0))
        try:
            yield from _lines(response)
        except (HTTPError, OSError) as error:
            raise ClusterUnavailable(f"GET {path}: {error}") from error
        finally:
            response.close()
            response.release_conn()

    def apply(
        self, manifest: Manifest, *, subresource: str = "", dry_run: bool = False, manager: str = names.FIELD_MANAGER
    ) -> dict[str, Any]:
        """Apply the manifest with forced server-side apply by a field manager, and return the object."""
        ref = Ref.of_manifest(manifest)
        query = {"fieldManager": manager, "force": "true", "fieldValidation": "Strict"}
        if dry_run:
            query["dryRun"] = "All"
        path = KINDS[ref.kind].path(ref.namespace, ref.name, subresource)
        return self.json("PATCH", path, query=query, body=manifest, content_type=APPLY)

    def delete(self, ref: Ref, uid: str) -> None:
        """Delete the object if it still has this uid; one that is gone already is no error."""
        self.delete_at(KINDS[ref.kind].path(ref.namespace, ref.name), uid)

    def delete_at(self, path: str, uid: str) -> None:
        """Delete an object by its path, for kinds that are not mirrored; else like ``delete``."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        try:
            self.json("DELETE", path, body=options)
        except ClusterRefused as error:
            if error.status != 404:
                raise

    def get(self, ref: Ref) -> dict[str, Any] | None:
        """Return the object; None if it does not exist."""
        try:
            return self.json("GET", KINDS[ref.kind].path(ref.namespace, ref.name))
        except ClusterRefused as error:
            if error.status == 404:
                return None
            raise

    def list(self, kind: Kind, read: Callable[[dict[str, Any]], Item], namespace: str = "") -> tuple[list[Item], int]:
        """Return what ``read`` returns for each object that the kind selects, and the revision of the list.

        With ``namespace``, only objects of that namespace. Raw objects are loaded page by page and not kept.
        """
        items: list[Item] = []
        query: dict[str, Any] = {"limit": PAGE, "labelSelector": kind.selector}
        while True:
            page = self.json("GET", kind.path(namespace), query=query, timeout=(3.0, 60.0))
            items += map(read, page.get("items") or ())
            if not (token := page["metadata"].get("continue")):
                return items, int(page["metadata"]["resourceVersion"])
            query = {**query, "continue": token}

    def revision(self, kind: Kind) -> int:
        """Return the current revision of the kind."""
        page = self.json("GET", kind.path(), query={"limit": 1, "labelSelector": kind.selector})
        return int(page["metadata"]["resourceVersion"])

    def watch(self, kind: Kind, resource_version: int) -> Iterator[dict[str, Any]]:
        """Yield events after a revision, including bookmarks, until the server ends the request (``WATCH_S``).

        The read timeout is longer than that, so a half-open connection raises ClusterUnavailable instead of blocking
        forever.
        """
        query = {
            "watch": "true",
            "resourceVersion": str(resource_version),
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
            "labelSelector": kind.selector,
        }
        sent_at = clock.now()
        response = self.request("GET", kind.path(), query=query, timeout=(3.0, WATCH_S + 4.0))
        self.skew.add(response.headers.get("Date", ""), sent_at, clock.now())
        try:
            yield from map(decoded, _lines(response))
        except (HTTPError, OSError, ValueError) as error:
            raise ClusterUnavailable(f"watch {kind.name}: {error}") from error
        finally:
            response.close()
            response.release_conn()


def decoded(text: bytes) -> Any:
    """Return the value of a JSON text without NUL characters. PostgreSQL stores none, and a tenant may write them where
    Kubernetes checks no form, such as in an ownerReference.
    """
    return json.loads(NUL.sub(rb"\1", text) if rb"\u0000" in text else text)


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    buffer = b""
    while chunk := response.read1(65536):
        *lines, buffer = (buffer + chunk).split(b"\n")
        yield from lines


def _as_cluster_error(error: ApiException) -> ClusterUnavailable | ClusterRefused:
    try:
        status = json.loads(error.body or "{}")
    except ValueError:
        status = {}
    message = status.get("message") or str(error.body or error.reason)
    code = int(error.status or 0)
    if STORE_FULL in message:
        return ClusterStoreFull(f"{code}: {message}")
    if code in RETRYABLE_STATUSES or code == 0 or POLICY_NOT_LOADED.search(message):
        return ClusterUnavailable(f"{code}: {message}")
    causes = (status.get("details") or {}).get("causes") or ()
    return ClusterRefused(code, status.get("reason", ""), message, causes)
