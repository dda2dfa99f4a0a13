"""The kinds of objects of an API server, by its own discovery."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
ROOTS = ("/api", "/apis")


class Kind(NamedTuple):
    name: str
    plural: str
    group: str
    version: str
    namespaced: bool
    verbs: frozenset[str]

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the path of its objects, of those in a namespace, or of one object."""
        root = f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"
        place = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        return f"{root}{place}/{self.plural}{f'/{name}' if name else ''}"


def read(documents: Iterable[dict[str, Any]]) -> Iterator[Kind]:
    """Yield all kinds of the documents at ROOTS, the preferred version of each group first."""
    for document in documents:
        for group in document["items"]:
            for version in group["versions"]:
                for one in version.get("resources", ()):
                    yield Kind(
                        one["responseKind"]["kind"],
                        one["resource"],
                        group["metadata"].get("name", ""),
                        version["version"],
                        one["scope"] == "Namespaced",
                        frozenset(one["verbs"]),
                    )


def find(kinds: Iterable[Kind], name: str, api_version: str = "") -> Kind | None:
    """Return the kind by its name or plural, as kubectl reads them: pod, pods or workloads.kueue.x-k8s.io. A workload
    of no group is Kueue's, not the scheduler's.
    """
    short, _, group = name.lower().partition(".")
    found = [
        kind
        for kind in kinds
        if short in (kind.name.lower(), kind.plural)
        and group in ("", kind.group)
        and api_version in ("", kind.api_version)
    ]
    return min(found, key=lambda kind: kind.group == "scheduling.k8s.io", default=None)
