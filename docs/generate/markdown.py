"""Pieces of Markdown that the generated pages share."""

from collections.abc import Iterable, Iterator, Sequence


def cell(text: str) -> str:
    """Return the text as a cell of a table: one line, without a bar."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, ended by an empty line; "" if it has no rows."""
    lines = [f"| {' | '.join(cell(one) for one in row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *lines]) + "\n\n" if lines else ""


def rows_of(text: str, first: str) -> Iterator[dict[str, str]]:
    """Yield the rows, by heading, of every table whose first heading is ``first``."""
    headings: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells and not headings:
            headings = cells
        elif headings[:1] == [first] and cells and not cells[0].startswith("---"):
            yield dict(zip(headings, cells, strict=True))
        elif not cells:
            headings = []
