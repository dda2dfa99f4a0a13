"""Pieces of Markdown that the generated pages share."""

from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """Return the text as a cell of a table: one line, without a bar."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, ended by an empty line; "" if it has no rows."""
    lines = [f"| {' | '.join(cell(one) for one in row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *lines]) + "\n\n" if lines else ""
