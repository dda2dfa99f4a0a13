"""python -m tests.cluster.rights [--write]: the tables of docs/evidence/rights.md, between its two marks.

tests/unit/test_rights.py checks that the entries' references exist, and tests/cluster/test_rights.py checks the entries
against the API server.
"""

from collections import Counter

from deploy.local.home import REPOSITORY
from tests.cluster.rights.table import VERDICTS, Entry, Table, entries, tables
from tests.support.cluster import guide_tables

GUIDE = REPOSITORY / "docs" / "evidence" / "rights.md"


def written(text: str) -> str:
    """Return the guide with current tables; raise ValueError if its marks are missing."""
    return guide_tables.filled(GUIDE, "rights", text, page())


def page() -> str:
    counted = Counter(entry.verdict for entry in entries() for _ in entry.names)
    told = ", ".join(f"{counted[verdict]} {verdict}" for verdict in VERDICTS)
    return f"{counted.total()} rights and fields: {told}.\n\n" + "\n".join(_section(table) for table in tables())


def _section(table: Table) -> str:
    text = [table.text, ""] if table.text else []
    head = [f"## {table.title}", "", *text, "| what | verdict | by | why, and where it is tried |", "|---|---|---|---|"]
    return "\n".join([*head, *(_row(entry) for entry in table.entries)]) + "\n"


def _row(entry: Entry) -> str:
    names = ", ".join(f"`{name}`" for name in entry.names) if "." in entry.names[0].split()[0] else _rights(entry)
    whole = ", with all below" if entry.whole else ""
    by = ", ".join(_guard(one) for one in entry.by)
    shown = [f"“{attack}”" for attack in entry.attacks] + [f"`{test.partition('::')[2]}`" for test in entry.tests]
    return f"| {names}{whole} | {entry.verdict} | {by} | {_cell(entry.why, '; '.join(shown))} |"


def _rights(entry: Entry) -> str:
    """Return the verbs once, and the kinds."""
    verbs, kinds = (dict.fromkeys(name.split()[at] for name in entry.names) for at in (0, 1))
    return f"{', '.join(verbs)}: {', '.join(f'`{kind}`' for kind in kinds)}"


def _guard(name: str) -> str:
    return f"`{name.rpartition('/')[2]}`" if name.endswith(".yaml") else name


def _cell(*parts: str) -> str:
    return " ".join(part for part in parts if part).replace("|", "\\|")


if __name__ == "__main__":
    guide_tables.run("tests.cluster.rights", "What tenants may write.", GUIDE, written, page)
