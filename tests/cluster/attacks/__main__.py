"""python -m tests.cluster.attacks [--write]: the table of docs/evidence/attacks.md, between its two marks.

Each row has an attack, the policy that refuses it, and a part of the message; tests/cluster/test_attacks.py checks each
row against the API server.
"""

from collections import Counter

from deploy.local.home import REPOSITORY
from tests.support.cluster import guide_tables
from tests.support.cluster.manifests import Entry, table

GUIDE = REPOSITORY / "docs" / "evidence" / "attacks.md"
WITH = {"tenant": "a member", "viewer": "a viewer", "portal": "the portal", "admin": "an operator"}


def written(text: str) -> str:
    """Return the guide with the current table; raise ValueError if its marks are missing."""
    return guide_tables.filled(GUIDE, "attacks", text, attacks())


def attacks() -> str:
    rows = table("attacks")
    count = Counter(row.get("as", "tenant") for row in rows)
    whose = ", ".join(f"{count[key]} with the token of {word}" for key, word in WITH.items())
    lines = [
        f"{len(rows)} attacks: {whose}.",
        "",
        "| what is tried | who refuses | in words that have |",
        "|---|---|---|",
    ]
    lines += [f"| {row['attack']} | {_guard(row)} | {_cell(row['message'])} |" for row in rows]
    return "\n".join(lines) + "\n"


def _guard(row: Entry) -> str:
    folder, _, file = row["guard"].rpartition("/")
    return f"`{file}`" if folder else str(row["guard"])


def _cell(words: str) -> str:
    return " ".join(words.replace("|", "\\|").split())


if __name__ == "__main__":
    guide_tables.run("tests.cluster.attacks", "The table of attacks.", GUIDE, written, attacks)
