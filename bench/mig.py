"""python -m bench.mig [--write]: the tables of docs/concepts/mig.md, each between two marks of that page."""

import argparse
from collections.abc import Callable

from bench import fragmentation
from deploy.local.home import REPOSITORY
from quotas.catalog.layouts import layouts, maximal_layouts
from quotas.catalog.mig_tables import TABLES, Geometry

GUIDE = REPOSITORY / "docs" / "concepts" / "mig.md"


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


TABLE: dict[str, Callable[[], str]] = {
    "products": products,
    "one-gpu": fragmentation.table_of_one_gpu,
    "at-once": fragmentation.table_of_full_fleet,
    "after-a-while": fragmentation.table_of_churn,
}


def written(text: str) -> str:
    """Return the guide with current tables; raise ValueError if marks are missing."""
    for name, table in TABLE.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        if begin not in text or end not in text:
            raise ValueError(f"{GUIDE.name} lacks the marks {begin.strip()} and {end}")
        head, _, rest = text.partition(begin)
        text = f"{head}{begin}{table()}{end}{rest.partition(end)[2]}"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.mig", description="The tables of docs/concepts/mig.md.")
    parser.add_argument("--write", action="store_true", help="into the guide, instead of onto the screen")
    if parser.parse_args().write:
        GUIDE.write_text(written(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print("\n".join(table() for table in TABLE.values()))  # noqa: T201


if __name__ == "__main__":
    main()
