"""The random tenant's operations: calls with a member's token, and requests and releases in the portal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from allocations.domain.allocation_spec import AllocationRequest, Constraints
from allocations.models import Allocation
from allocations.requests import services
from portal.core.errors import Problem
from portal.tenants.models import Project, User
from tests.support.cluster.api_client import MERGE_PATCH, NAMESPACED, ApiClient, Object


@dataclass(frozen=True)
class Call:
    """A call to the API server. ``subject`` replaces ``path`` in the log."""

    method: str
    path: str
    subject: str
    body: Object = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """Request slices from the portal."""

    project: str
    name: str
    offering: str
    count: int
    spread: bool = False


@dataclass(frozen=True)
class Release:
    """Release an allocation in the portal."""

    project: str
    name: str


Operation = Call | Request | Release


def path_of(thing: Object) -> str:
    return f"{NAMESPACED[thing['kind']].format(thing['metadata']['namespace'])}/{thing['metadata']['name']}"


def create(thing: Object) -> Call:
    kind, metadata = thing["kind"], thing["metadata"]
    return Call("POST", NAMESPACED[kind].format(metadata["namespace"]), f"{kind} {metadata['name']}", thing)


def patch(thing: Object, body: Object, subresource: str = "") -> Call:
    path = f"{path_of(thing)}/{subresource}" if subresource else path_of(thing)
    return Call("PATCH", path, f"{thing['kind']} {thing['metadata']['name']}", body)


def delete(rng: Random, thing: Object) -> Call:
    return Call("DELETE", path_of(thing), f"{thing['kind']} {thing['metadata']['name']}", _delete_options(rng))


def delete_all(rng: Random, kind: str, namespace: str, selector: str) -> Call:
    path = NAMESPACED[kind].format(namespace)
    return Call("DELETE", path, f"every {kind} with {selector}", _delete_options(rng), {"labelSelector": selector})


def _delete_options(rng: Random) -> Object:
    propagation = rng.choice(["Background", "Background", "Foreground", "Orphan", None])
    grace = rng.choice([None, None, 0, 1, 5, 12, 900])
    options = {"propagationPolicy": propagation, "gracePeriodSeconds": grace}
    return {name: value for name, value in options.items() if value is not None}


class Performer:
    """Performs operations as one member; ``tenant`` has the member's token."""

    def __init__(self, member: User, tenant: ApiClient) -> None:
        self.member, self.tenant = member, tenant

    def perform(self, operation: Operation) -> tuple[int, str]:
        """Return the HTTP status and the message of a refusal; refusals by the portal have status 409."""
        if isinstance(operation, Call):
            kind = MERGE_PATCH if operation.method == "PATCH" else "application/json"
            answer = self.tenant.call(
                operation.method, operation.path, operation.body or None, operation.query, content_type=kind
            )
            return answer.status, answer.message
        try:
            if isinstance(operation, Request):
                spec = AllocationRequest(
                    project=operation.project,
                    offering=operation.offering,
                    count=operation.count,
                    name=operation.name,
                    constraints=Constraints(spread=operation.spread),
                )
                services.request(self.member, spec)
                return 201, ""
            services.release(self.member, _row(operation))
        except Problem as refusal:
            return 409, str(refusal)
        return 200, ""


def _row(operation: Release) -> Allocation:
    project = Project.objects.get(slug=operation.project)
    return Allocation.objects.get(project=project, name=operation.name)


def describe(operation: Operation) -> str:
    """Return the operation in one line, with all that it sends."""
    if isinstance(operation, Call):
        sent: Any = {**operation.body, **operation.query}
        return f"{operation.method} {operation.subject} {_brief(sent)}".rstrip()
    return str(operation)


def _brief(sent: Any) -> str:
    """Return the manifest without what all manifests have in common."""
    if isinstance(sent, dict):
        dull = ("securityContext", "apiVersion", "image", "kind", "name", "namespace")
        inner = (f"{key}: {_brief(value)}" for key, value in sent.items() if key not in dull)
        return "{" + ", ".join(inner) + "}" if sent else ""
    return "[" + ", ".join(map(_brief, sent)) + "]" if isinstance(sent, list) else str(sent)
