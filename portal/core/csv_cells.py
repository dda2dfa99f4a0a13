"""Cells of CSV that no spreadsheet takes for a formula, and reading them back. Pure."""

FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""What a formula begins with, by OWASP, CSV injection."""


def escaped(text: str) -> str:
    """Return a text as a cell: with an apostrophe before it if it would be a formula, or be read back as one."""
    return f"'{text}" if text.lstrip("'").startswith(FORMULAS) else text


def unescaped(cell: str) -> str:
    """Return the text of a cell that ``escaped`` wrote."""
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(FORMULAS) else cell
