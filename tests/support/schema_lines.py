"""The OpenAPI schema as lines that a person can compare: without words, and without what follows from the rest."""

import json
from typing import Any

WIDTH = 140
WORDS = ("description", "summary")
"""Texts for people, unless they are objects: a field may have such a name."""
REFERENCE, PROBLEM = "#/components/schemas/", "application/problem+json"


def lines(schema: dict[str, Any]) -> str:
    """Return the paths and components as JSON, by name.

    ``{"$ref": "#/components/schemas/Me"}`` is ``"Me"``, problems are a list of names, and ``"required": "all"`` stands
    for all properties.
    """
    return "\n".join(_written(_bare({name: schema[name] for name in ("paths", "components")}), "")) + "\n"


def _bare(part: Any) -> Any:
    if isinstance(part, list):
        return [_bare(each) for each in part]
    if not isinstance(part, dict):
        return part
    if set(part) == {"$ref"}:
        return part["$ref"].removeprefix(REFERENCE)
    found = {name: _bare(each) for name, each in part.items() if not _follows(name, each)}
    if isinstance(found.get("properties"), dict) and found.get("required") == sorted(found["properties"]):
        found["required"] = "all"
    if set(found) == {"allOf"} and len(found["allOf"]) == 1:  # a reference that had a description
        return found["allOf"][0]
    if set(found) == {PROBLEM}:
        schema = found[PROBLEM]["schema"]
        return schema["oneOf"] if isinstance(schema, dict) else [schema]
    return found


def _follows(name: str, part: Any) -> bool:
    """Return whether a member says nothing that the others do not: words, or the mapping of a choice of problems."""
    return (name in WORDS and isinstance(part, str)) or (name == "discriminator" and "mapping" in part)


def _written(part: Any, before: str) -> list[str]:
    """Return the lines of a value: one, if it is short enough or a list of texts."""
    whole = before + json.dumps(part, sort_keys=True, ensure_ascii=False)
    is_texts = isinstance(part, list) and all(isinstance(each, str) for each in part)
    if len(whole) <= WIDTH or is_texts or not isinstance(part, dict | list):
        return [whole]
    indent = " " * (len(before) - len(before.lstrip()) + 1)
    if isinstance(part, list):
        inner = [_written(each, indent) for each in part]
    else:
        inner = [_written(part[name], f"{indent}{json.dumps(name)}: ") for name in sorted(part)]
    for each in inner[:-1]:
        each[-1] += ","
    opened, closed = "[]" if isinstance(part, list) else "{}"
    return [before + opened, *(line for each in inner for line in each), indent[1:] + closed]
