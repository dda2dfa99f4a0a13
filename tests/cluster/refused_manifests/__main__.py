"""python -m tests.cluster.refused_manifests [--write]: the manifests of docs/how-to/refused-manifests.md.

They are between two marks. Each is tried by tests/cluster/test_attacks.py.
"""

import yaml

from deploy.local.home import REPOSITORY
from tests.cluster.refused_manifests.rows import Row, rows
from tests.support.cluster import guide_tables

GUIDE = REPOSITORY / "docs" / "how-to" / "refused-manifests.md"


def written(text: str) -> str:
    """Return the guide with the current manifests; raise ValueError if its marks are missing."""
    return guide_tables.filled(GUIDE, "manifests", text, table())


def table() -> str:
    return "\n".join(map(_section, rows({"runtime": "nvidia"})))


def _section(row: Row) -> str:
    lines = [f"## {row.title}", "", "| message | change |", "|---|---|"]
    for step in row.steps:
        told = "; ".join(f"“{words}”" for words in step.told)
        lines.append(f"| {'warning: ' if step.warns else ''}{told} | {step.so} |")
    text = yaml.safe_dump_all(row.mended, sort_keys=False, width=110).rstrip()
    return "\n".join([*lines, "", "```yaml", text, "```", ""])


if __name__ == "__main__":
    guide_tables.run("tests.cluster.refused_manifests", "Refused manifests, and what runs.", GUIDE, written, table)
