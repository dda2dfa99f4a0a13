"""The pages of the REST API, from its OpenAPI schema: every operation, and every object."""

from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator

from docs.generate.markdown import table

PREFIX = "/api/v1"
METHODS = ("get", "post", "put", "patch", "delete")
PROBLEM = "urn:gpu-portal:problem:"
OPERATIONS = """# REST operations

For those who write clients: every operation with its parameters, its body and its answers. Written by `make reference`
from the OpenAPI schema, which is at `/api/v1/schema`. The rules of all operations are in [the REST API](api.md),
the fields of answers in [objects](rest-objects.md), and who may call what in [who may do what](access.md). Paths begin
with `/api/v1`.

"""
OBJECTS = """# REST objects

For those who read answers of the REST API: every object with its fields. Written by `make reference` from the schema.
Every field of an answer is always there; an unknown value is null, an unknown text
null or empty. [Operations](rest.md) name the objects.

"""
Schema = dict[str, Any]


@cache
def _schema() -> Schema:
    return dict(SchemaGenerator().get_schema(request=None, public=True))


def operations() -> str:
    by_tag: dict[str, list[str]] = {}
    for path, methods in _schema()["paths"].items():
        for method in METHODS:
            if method in methods:
                by_tag.setdefault(methods[method]["tags"][0], []).append(_operation(method, path, methods[method]))
    parts = [f"## {tag}\n\n" + "\n".join(texts) for tag, texts in sorted(by_tag.items())]
    return OPERATIONS + "\n".join(parts)


def objects() -> str:
    schemas = _schema()["components"]["schemas"]
    named = {name: one for name, one in schemas.items() if one.get("type") == "object" and not name.endswith("Problem")}
    parts = []
    for name, one in sorted(named.items()):
        said = f"{one['description']}\n\n" if one.get("description") else ""
        parts.append(f"## {name}\n\n{said}{_fields(one)}".rstrip("\n") + "\n")
    return OBJECTS + "\n".join(parts)


def _operation(method: str, path: str, operation: Schema) -> str:
    summary, description = (operation.get(key, "").strip() for key in ("summary", "description"))
    said = description if description.startswith(summary) else f"{summary}.\n\n{description}".strip()
    parameters = [
        (f"`{one['name']}`", one["in"], _type(one["schema"]), one.get("description", ""))
        for one in operation.get("parameters", [])
    ]
    lines = [f"### {method.upper()} {path.removeprefix(PREFIX)}\n", f"{said}\n" if said else ""]
    lines.append(table(("parameter", "in", "type", "meaning"), parameters))
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body:
        lines.append("Body:\n\n" + _fields(_resolved(body)))
    answers = [(status, _answer(one)) for status, one in sorted(operation["responses"].items())]
    lines.append(table(("status", "answer"), answers))
    return "\n".join(line.rstrip("\n") + "\n" for line in lines if line)


def _answer(response: Schema) -> str:
    """Return the object of an answer, or the reasons of a refusal."""
    for kind, content in response.get("content", {}).items():
        schema = content.get("schema", {})
        if kind == "application/problem+json":
            reasons = [_resolved(one)["properties"]["reason"] for one in schema.get("oneOf", [schema])]
            return ", ".join(f"`{one['const']}`" for one in reasons if "const" in one) or "a problem"
        return _type(schema) if kind == "application/json" else f"`{kind}`"
    return str(response.get("description") or "no body")


def _fields(schema: Schema) -> str:
    required = set(schema.get("required", ()))
    return table(
        ("field", "type", "required", "meaning"),
        (
            (f"`{name}`", _type(one), "yes" if name in required else "", _resolved(one).get("description", ""))
            for name, one in schema.get("properties", {}).items()
        ),
    )


def _resolved(schema: Schema) -> Schema:
    """Return the schema, with that of its reference under its own keys."""
    if "$ref" not in schema:
        return schema
    return {**_schema()["components"]["schemas"][schema["$ref"].rpartition("/")[2]], **schema}


def _type(schema: Schema) -> str:
    """Return a schema's type in words: a link to an object, or the choices of an enumeration."""
    for key in ("oneOf", "anyOf", "allOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[key]))
    found = _resolved(schema)
    if "const" in found:
        return f"`{found['const']}`"
    if "enum" in found:
        return " or ".join("null" if one is None else f"`{one}`" if one != "" else "empty" for one in found["enum"])
    if found.get("type") == "array":
        return f"list of {_type(found['items'])}"
    if "$ref" in schema and found.get("type") == "object":
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](rest-objects.md#{name.lower()})"
    kinds = found.get("type", "any")
    kind = " or ".join(kinds) if isinstance(kinds, list) else str(kinds)
    return f"{kind} ({found['format']})" if "format" in found else kind
