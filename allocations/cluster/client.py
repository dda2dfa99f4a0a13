"""The API server as the portal needs it: raw JSON over the official client's connection pool.

Typed models are not used: they cost more time than all else, and drop fields they do not know.
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
from allocations.cluster.errors import ClusterRefused, ClusterStoreFull, ClusterUnavailable
from allocations.cluster.kinds import KINDS, Kind
from allocations.domain.etcd_usage import STORE_FULL
from allocations.domain.objects import Manifest, Ref
from portal.clusters import registry

CONNECTIONS = 40
"""Kept alive per process: the watcher has one for each kind."""
TIMEOUT_S = (3.0, 10.0)
WATCH_S = 10
"""How long one watch request lasts. Its orderly end is a sign of life, so a silent connection is found dead soon after,
and the last sighting of what nobody saw end is never older than this before an outage."""
PAGE = 500
APPLY = "application/apply-patch+yaml"
Item = TypeVar("Item")
PATIENCE = frozenset({401, 409, 429, 500, 502, 503, 504})
UNREAD = re.compile(r"""policy ["']gpu-portal-.* denied request: failed to configure""", re.IGNORECASE)
"""What an API server that has started says for up to half a minute: it does not find yet what our policies read."""


@functools.cache
def connect(cluster: str) -> "Client":
    """Return the client of a cluster, one per process, so that connections are kept alive.

    Raises ClusterUnavailable for a cluster that the environment has no credentials for.
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
        configuration = Configuration()
        configuration.host = reach.server
        configuration.refresh_api_key_hook = self._take_token
        self._take_token(configuration)  # the hook is only asked by a client that knows some token
        self._api = ApiClient(configuration)
        # The CA comes as text, which the client's own pool could only read from a file.
        context = ssl.create_default_context(cadata=reach.ca or None)
        self._api.rest_client.pool_manager = urllib3.PoolManager(
            maxsize=CONNECTIONS, retries=False, ssl_context=context
        )

    def _take_token(self, configuration: Configuration) -> None:
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
        """One call. Raises ClusterUnavailable (try again) or ClusterRefused (the API server's own words)."""
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
        response = self.request(method, path, **kwargs)
        try:
            body: dict[str, Any] = json.loads(response.data)
            return body
        except (HTTPError, OSError) as error:
            raise ClusterUnavailable(f"{method} {path}: {error}") from error
        finally:
            response.release_conn()

    def lines(self, path: str) -> Iterator[bytes]:
        """The lines of an answer that is no JSON, such as metrics, one by one: nothing is kept of what is long."""
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
        """Server-side apply with our field manager, by force: what we own we own. Returns the object."""
        ref = Ref.of_manifest(manifest)
        query = {"fieldManager": manager, "force": "true", "fieldValidation": "Strict"}
        if dry_run:
            query["dryRun"] = "All"
        path = KINDS[ref.kind].path(ref.namespace, ref.name, subresource)
        return self.json("PATCH", path, query=query, body=manifest, content_type=APPLY)

    def delete(self, ref: Ref, uid: str) -> None:
        """Delete this very object (not one that took its name since); already gone is fine."""
        self.delete_at(KINDS[ref.kind].path(ref.namespace, ref.name), uid)

    def delete_at(self, path: str, uid: str) -> None:
        """As ``delete``, of a kind that is not mirrored."""
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
        try:
            return self.json("GET", KINDS[ref.kind].path(ref.namespace, ref.name))
        except ClusterRefused as error:
            if error.status == 404:
                return None
            raise

    def list(self, kind: Kind, read: Callable[[dict[str, Any]], Item], namespace: str = "") -> tuple[list[Item], int]:
        """All objects of the kind that its selector names, of one namespace if it is given, as ``read`` makes them, and
        the revision of the list.

        Objects come and go page by page: only what was made of them is kept.
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
        """The revision at which the kind is now."""
        page = self.json("GET", kind.path(), query={"limit": 1, "labelSelector": kind.selector})
        return int(page["metadata"]["resourceVersion"])

    def watch(self, kind: Kind, resource_version: int) -> Iterator[dict[str, Any]]:
        """Events from a revision on, bookmarks too, until the server ends the request (``WATCH_S``).

        The read timeout is longer than the longest silence of a living connection, so a half-open one raises
        ClusterUnavailable instead of hanging for ever.
        """
        query = {
            "watch": "true",
            "resourceVersion": str(resource_version),
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
            "labelSelector": kind.selector,
        }
        response = self.request("GET", kind.path(), query=query, timeout=(3.0, WATCH_S + 4.0))
        try:
            yield from map(json.loads, _lines(response))
        except (HTTPError, OSError, ValueError) as error:
            raise ClusterUnavailable(f"watch {kind.name}: {error}") from error
        finally:
            response.close()
            response.release_conn()


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
    if code in PATIENCE or code == 0 or UNREAD.search(message):
        return ClusterUnavailable(f"{code}: {message}")
    causes = (status.get("details") or {}).get("causes") or ()
    return ClusterRefused(code, status.get("reason", ""), message, causes)
