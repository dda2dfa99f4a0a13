"""The page of the chart's values, from its schema and its defaults."""

import json
from collections.abc import Iterator
from typing import Any

import yaml

from docs.generate.markdown import table
from portal.settings import BASE_DIR

CHART = BASE_DIR / "deploy" / "chart"
HEAD = """# Values of the Helm chart

For the platform team: every value of the chart `gpu-portal`, with its default. Written by `make reference` from
`deploy/chart/values.schema.json`, which Helm checks at each install and upgrade. The way to a first
install is in [Install on your cluster](install.md).

"""


def page() -> str:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    return HEAD + table(("value", "default", "meaning"), _rows(schema, defaults)).rstrip("\n") + "\n"


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema that ``$ref`` names, or the schema itself."""
    if reference := schema.get("$ref"):
        document = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
        found: dict[str, Any] = document["$defs"][reference.removeprefix("#/$defs/")]
        return found
    return schema


def _rows(schema: dict[str, Any], defaults: dict[str, Any], path: str = "") -> Iterator[tuple[str, str, str]]:
    for name, each in schema["properties"].items():
        if name not in defaults:
            continue
        inner, default, words = resolved(each), defaults[name], each["description"]
        is_group = bool(inner.get("properties")) and "$ref" not in each
        is_required = name in schema.get("required", ()) and not default
        shown = "" if is_group else "required" if is_required else f"`{json.dumps(default)}`"
        if "enum" in each:
            words += f" One of {', '.join(f'`{choice}`' for choice in each['enum'])}."
        yield f"`{path}{name}`", shown, words
        if is_group:
            yield from _rows(inner, default, f"{path}{name}.")
