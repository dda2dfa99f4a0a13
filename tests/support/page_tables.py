"""The tables and figures of a page, as a reader sees them and with the exact values behind them."""

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Cell:
    """The text of a cell, and the value of its `data` element; empty without one."""

    text: str = ""
    value: str = ""


@dataclass
class Table:
    """The rows of the body of a table with this class; `heads` are the texts of its columns."""

    name: str
    heads: list[str] = field(default_factory=list)
    rows: list[list[Cell]] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tables: list[Table] = []
        self.figures: dict[str, Cell] = {}
        self.cell: Cell | None = None
        self.part = self.tile = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "table":
            self.tables.append(Table(values.get("class") or ""))
        elif tag in ("thead", "tbody", "tfoot"):
            self.part = tag
        elif tag == "tr" and self.part == "tbody":
            self.tables[-1].rows.append([])
        elif tag in ("th", "td"):
            self.cell = Cell()
        elif tag == "div" and (values.get("id") or "").startswith("tile-"):
            self.tile = (values["id"] or "").removeprefix("tile-")
        elif tag == "dd" and self.tile and self.tile not in self.figures:
            self.cell = self.figures[self.tile] = Cell()
        elif tag == "data" and self.cell is not None:
            self.cell.value = values["value"] or ""

    def handle_endtag(self, tag: str) -> None:
        if tag in ("th", "td") and self.cell is not None:
            self.cell.text = " ".join(self.cell.text.split())
            if self.part == "thead":
                self.tables[-1].heads.append(self.cell.text)
            elif self.part == "tbody":
                self.tables[-1].rows[-1].append(self.cell)
        if tag in ("th", "td", "dd"):
            self.cell = None

    def handle_data(self, data: str) -> None:
        if self.cell is not None:
            self.cell.text += data


def tables(html: str) -> dict[str, Table]:
    """Return the tables by their class."""
    reader = _Reader()
    reader.feed(html)
    return {one.name: one for one in reader.tables}


def figures(html: str) -> dict[str, Cell]:
    """Return the figures of the tiles by their name."""
    reader = _Reader()
    reader.feed(html)
    return reader.figures
