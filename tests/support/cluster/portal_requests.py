"""What the portal may do in the cluster, by deploy/cluster/roles, and what it asked, by the API server's audit log."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from deploy.local.home import REPOSITORY

ACCOUNT = {"kind": "ServiceAccount", "name": "portal", "namespace": "gpu-portal"}
TEST_CLIENT = "python-urllib3"
"""Tests that try what the portal's token cannot do (``ApiClient``); the portal uses the official client."""
CREATED = 201
ROLES = REPOSITORY / "deploy" / "cluster" / "roles"


class Right(NamedTuple):
    """A verb on a resource (``plural.group/subresource``) or a path."""

    verb: str
    resource: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


def granted() -> set[Right]:
    """Return the rights of the roles that are bound to the portal's account."""
    files = (path for path in ROLES.glob("*.yaml") if path.name != "kustomization.yaml")
    objects = [one for path in files for one in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    bound = {one["roleRef"]["name"] for one in objects if ACCOUNT in one.get("subjects", ())}
    rules = [rule for one in objects if one["metadata"]["name"] in bound for rule in one.get("rules", ())]
    return {right for rule in rules for right in _of_rule(rule)}


def _of_rule(rule: Mapping[str, Any]) -> Iterator[Right]:
    for verb in rule["verbs"]:
        yield from (Right(verb, path) for path in rule.get("nonResourceURLs", ()))
        for group in rule.get("apiGroups", ()):
            yield from (Right(verb, named(group, resource)) for resource in rule["resources"])


def named(group: str, resource: str) -> str:
    """Return ``plural.group/subresource`` for a group and ``plural/subresource``."""
    plural, slash, part = resource.partition("/")
    return f"{plural}{f'.{group}' if group else ''}{slash}{part}"


class Asked(NamedTuple):
    """A right that a request used, or that it lacked."""

    right: Right
    is_denied: bool
    """Whether RBAC denied it: an admission policy refuses with 403 too."""
    where: str
    """The request's URI."""


def asked(log: Path) -> list[Asked]:
    """Return the requests of the portal in an audit log (audit.k8s.io/v1, one event a line), each of a kind once."""
    with log.open(encoding="utf-8") as lines:
        return list(_of_events(json.loads(line) for line in lines if line.endswith("\n")))


def _of_events(events: Iterable[Mapping[str, Any]]) -> Iterator[Asked]:
    """Yield the requests; a server-side apply that made the object was authorized to create it, too."""
    known = set()
    for event in events:
        if TEST_CLIENT in event["userAgent"]:
            continue
        ref = event.get("objectRef")
        plural = "/".join(filter(None, (ref["resource"], ref.get("subresource")))) if ref else ""
        resource = named(ref.get("apiGroup", ""), plural) if ref else event["requestURI"].partition("?")[0]
        is_denied = event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
        created = event["verb"] == "patch" and event["responseStatus"].get("code") == CREATED
        for verb in (event["verb"], *(["create"] if created else [])):
            if (one := (Right(verb, resource), is_denied)) not in known:
                known.add(one)
                yield Asked(*one, event["requestURI"])
