"""Tables of the guide that are generated from data, each between two marks of its page."""

import argparse
from collections.abc import Callable
from pathlib import Path


def filled(page: Path, mark: str, text: str, table: str) -> str:
    """Return ``text`` with ``table`` between the marks ``<!-- mark: begin -->`` and ``<!-- mark: end -->``.

    Raises ValueError if they are missing.
    """
    begin, end = f"<!-- {mark}: begin -->\n", f"<!-- {mark}: end -->"
    if begin not in text or end not in text:
        raise ValueError(f"{page.name} lacks the marks {begin.strip()} and {end}")
    head, _, rest = text.partition(begin)
    return f"{head}{begin}{table}{end}{rest.partition(end)[2]}"


def run(module: str, description: str, page: Path, written: Callable[[str], str], table: Callable[[], str]) -> None:
    """Run a module's command: print the table, or with ``--write`` write it into its page."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--write", action="store_true", help="into the guide, instead of onto the screen")
    if parser.parse_args().write:
        page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table(), end="")  # noqa: T201
