"""What a role may write, from the API server's OpenAPI: its permissions, and the schema of each body. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]
Documents = Mapping[str, Schema]
"""OpenAPI v3 documents by their path at the API server, for example ``apis/batch/v1``."""

ACTIONS = {
    "create": ("post", "connect post"),
    "update": ("put",),
    "patch": ("patch",),
    "delete": ("delete",),
    "deletecollection": ("deletecollection",),
    "get": ("connect get",),
}
"""Verb of a role → actions in OpenAPI that write something or access a container."""
QUERY = "Query"
"""The name under which query parameters of writing requests are listed."""
SCHEMAS = "#/components/schemas/"


@dataclass(frozen=True, order=True)
class Right:
    group: str
    resource: str
    """A verb on a resource or subresource, for example ``pods/exec``."""
    verb: str

    def __str__(self) -> str:
        kind, slash, part = self.resource.partition("/")
        return f"{self.verb} {kind}{f'.{self.group}' if self.group else ''}{slash}{part}"


def rights(rules: Iterable[Schema]) -> set[Right]:
    """Return the permissions in a ClusterRole's rules; raise ValueError for a rule by wildcard or by name, which cannot
    be enumerated.
    """
    found = set()
    for rule in rules:
        if rule.get("resourceNames") or rule.get("nonResourceURLs"):
            raise ValueError(f"a rule with names or addresses is not looked at: {rule}")
        for group in rule["apiGroups"]:
            found |= {Right(group, resource, verb) for resource in rule["resources"] for verb in rule["verbs"]}
    if any("*" in (right.group, right.resource, right.verb) for right in found):
        raise ValueError("a role of tenants names its groups, resources and verbs: no *")
    return found


@dataclass(frozen=True)
class Body:
    """``name`` of the kind written (or ``Query``), its ``schema``, and the schemas that it refers to."""

    name: str
    schema: Schema
    schemas: Mapping[str, Schema]


def bodies(documents: Documents, granted: Iterable[Right]) -> list[Body]:
    """Return all that requests with these permissions contain: each kind once, and the parameters of each request."""
    found: dict[str, Body] = {}
    asked: dict[str, Schema] = {}
    for right in sorted(granted):
        for document, item, operation in _operations(documents, right):
            schemas = document["components"]["schemas"]
            given = [*item.get("parameters", ()), *operation.get("parameters", ())]
            in_query = {one["name"]: one.get("schema", {}) for one in given if one["in"] == "query"}
            kind = operation["x-kubernetes-group-version-kind"]
            if operation["x-kubernetes-action"] == "connect":
                found.setdefault(kind["kind"], Body(kind["kind"], {"properties": in_query}, schemas))
                continue
            asked |= in_query
            for body in (_body(operation, schemas), _of_kind(kind, schemas)):
                if body:
                    found.setdefault(body.name, body)
    if asked:
        found[QUERY] = Body(QUERY, {"properties": asked}, {})
    return list(found.values())


def _operations(documents: Documents, right: Right) -> Iterator[tuple[Schema, Schema, Schema]]:
    """Yield each operation that the permission allows, with its path item and document."""
    resource, _, part = right.resource.partition("/")
    base = f"apis/{re.escape(right.group)}" if right.group else "api"
    path = re.compile(rf"/{base}/[^/]+/namespaces/{{namespace}}/{resource}(/{{name}}{f'/{part}' if part else ''})?")
    for document in documents.values():
        for address, item in document["paths"].items():
            if not path.fullmatch(address) or (part and not address.endswith(f"/{part}")):
                continue
            for method, operation in item.items():
                if method != "parameters" and _action(method, operation) in ACTIONS.get(right.verb, ()):
                    yield document, item, operation


def _action(method: str, operation: Schema) -> str:
    action = str(operation.get("x-kubernetes-action", ""))
    return f"{action} {method}" if action == "connect" else action


def _body(operation: Schema, schemas: Mapping[str, Schema]) -> Body | None:
    for content in operation.get("requestBody", {}).get("content", {}).values():
        name = reference(content["schema"])
        if name and properties(schemas[name]):
            return Body(short(name), schemas[name], schemas)
    return None


def _of_kind(kind: Schema, schemas: Mapping[str, Schema]) -> Body | None:
    """Return the body of a patch, which has no type in OpenAPI: that of the patched kind."""
    for name, schema in schemas.items():
        if kind in schema.get("x-kubernetes-group-version-kind", ()) and properties(schema):
            return Body(short(name), schema, schemas)
    return None


def reference(schema: Schema) -> str | None:
    """Return the schema that a field, its items or its values refer to; None if it is inline or primitive."""
    for one in (schema, *schema.get("allOf", ())):
        if "$ref" in one:
            return str(one["$ref"]).removeprefix(SCHEMAS)
    inner = schema.get("items") or schema.get("additionalProperties")
    return reference(inner) if isinstance(inner, Mapping) else None


def properties(schema: Schema) -> Mapping[str, Schema]:
    """Return the inline fields of a schema, its items or its values."""
    if "properties" in schema:
        return dict(schema["properties"])
    inner = schema.get("items") or schema.get("additionalProperties")
    return properties(inner) if isinstance(inner, Mapping) else {}


def short(name: str) -> str:
    return name.rpartition(".")[2]
