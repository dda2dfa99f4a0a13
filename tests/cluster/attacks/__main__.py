"""python -m tests.cluster.attacks [--write]: the table of attacks in docs/guide/guards.md, between its two marks.

What is tried, who refuses it, and a piece of what the person is told: tests/cluster/test_attacks.py holds the API
server to each row.
"""

import argparse
from collections import Counter

from deploy.local.home import REPOSITORY
from tests.cluster.attacks.manifests import Entry, table

GUIDE = REPOSITORY / "docs" / "guide" / "guards.md"
BEGIN, END = "<!-- attacks: begin -->\n", "<!-- attacks: end -->"
WITH = {"tenant": "a member", "viewer": "a viewer", "portal": "the portal", "admin": "an operator"}


def written(text: str) -> str:
    """The guide with the table as it is today; ValueError where its marks are missing."""
    if BEGIN not in text or END not in text:
        raise ValueError(f"{GUIDE.name} lacks the marks {BEGIN.strip()} and {END}")
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}{attacks()}{END}{rest.partition(END)[2]}"


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
    lines += [f"| {row['attack']} | {_guard(row)} | {_cell(row['told'])} |" for row in rows]
    return "\n".join(lines) + "\n"


def _guard(row: Entry) -> str:
    folder, _, file = row["guard"].rpartition("/")
    return f"`{file}`" if folder else str(row["guard"])


def _cell(words: str) -> str:
    return " ".join(words.replace("|", "\\|").split())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.attacks", description="The table of attacks.")
    parser.add_argument("--write", action="store_true", help="into the guide, instead of onto the screen")
    if parser.parse_args().write:
        GUIDE.write_text(written(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(attacks(), end="")  # noqa: T201


if __name__ == "__main__":
    main()
