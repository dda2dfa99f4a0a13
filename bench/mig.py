"""python -m bench.mig [--write]: the tables of MIG in the docs, each between two marks of its page."""

import argparse
from collections.abc import Callable
from pathlib import Path

from bench import fragmentation
from deploy.local.home import REPOSITORY
from quotas.catalog.layouts import layouts
from quotas.catalog.mig_tables import TABLES, Geometry
from tests.support.cluster import guide_tables
from tests.support.mig_layouts import maximal_layouts

DOCS = REPOSITORY / "docs"


def products() -> str:
    """Return a table: every product with its profiles, how many of each fit, and its number of layouts."""
    rows = ["| GPU | slices | profiles, and how many fit | layouts | of them full |", "|---" * 5 + "|"]
    for gpu in TABLES.values():
        profiles = ", ".join(f"`{one.name}`{_mark(gpu, one.name)} {one.max_instances}" for one in gpu.profiles)
        rows.append(
            f"| {gpu.name} | {gpu.compute} + {gpu.memory} | {profiles} "
            f"| {len(layouts(gpu))} | {len(maximal_layouts(gpu))} |"
        )
    return "\n".join(rows) + "\n"


def _mark(gpu: Geometry, profile: str) -> str:
    return "\\*" if profile in gpu.estimated else ""


TABLES_OF: dict[Path, dict[str, Callable[[], str]]] = {
    DOCS / "concepts" / "mig.md": {"products": products},
    DOCS / "appendix" / "mig.md": {
        "one-gpu": fragmentation.table_of_one_gpu,
        "at-once": fragmentation.table_of_full_fleet,
        "after-a-while": fragmentation.table_of_churn,
    },
}


def written(page: Path, text: str) -> str:
    """Return the text of the page with current tables; raise ValueError if marks are missing."""
    for name, table in TABLES_OF[page].items():
        text = guide_tables.filled(page, name, text, table())
    return text


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.mig", description="The tables of MIG in the docs.")
    parser.add_argument("--write", action="store_true", help="into the docs, instead of onto the screen")
    is_written = parser.parse_args().write
    for page, tables in TABLES_OF.items():
        if is_written:
            page.write_text(written(page, page.read_text(encoding="utf-8")), encoding="utf-8")
        else:
            print("\n".join(table() for table in tables.values()))  # noqa: T201


if __name__ == "__main__":
    main()
