"""python -m tests.cluster.published [--write]: the table of docs/reference/examples.md, between its two marks.

Each row was applied as a tenant, as it is and adapted: tests/cluster/test_published.py.
"""

from pathlib import Path
from typing import Any

import yaml

from deploy.local.home import REPOSITORY
from tests.support.cluster import guide_tables
from tests.support.cluster.manifests import build

GUIDE = REPOSITORY / "docs" / "reference" / "examples.md"
FOLDER = Path(__file__).parent
TITLES = {"NVIDIA": "NVIDIA's DRA demo specs", "Kueue": "Kueue's job examples"}


def examples() -> list[dict[str, Any]]:
    return list(yaml.safe_load((FOLDER / "examples.yaml").read_text(encoding="utf-8")))


def holds() -> list[dict[str, Any]]:
    return list(yaml.safe_load((FOLDER / "holds.yaml").read_text(encoding="utf-8")))


def written(text: str) -> str:
    """Return the guide with the current table; raise ValueError if its marks are missing."""
    return guide_tables.filled(GUIDE, "examples", text, table())


def table() -> str:
    lines = []
    for source, title in TITLES.items():
        lines += [f"## {title}", "", "| example | what it wants | as it is | adapted |", "|---|---|---|---|"]
        for row in examples():
            if row["from"] == source:
                adapted = f"runs: {row['by']}" if "adapted" in row else f"no: {row['why_not']}"
                lines.append(f"| {row['example']} | {row['wants']} | {_as_it_is(row['as_is'])} | {adapted} |")
        lines.append("")
    return "\n".join(lines)


def _as_it_is(sent: list[dict[str, Any]]) -> str:
    """Return what is told of each kind of object, each sentence once."""
    answers = [
        f"{build(entry, 'example')['kind']} refused: “{entry['refused']}”"
        if "refused" in entry
        else f"{build(entry, 'example')['kind']} accepted, with the warning: “{entry['warned']}”"
        for entry in sent
    ]
    return "; ".join(dict.fromkeys(answers))


if __name__ == "__main__":
    guide_tables.run("tests.cluster.published", "The table of published examples.", GUIDE, written, table)
