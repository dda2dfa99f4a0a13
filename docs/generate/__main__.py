"""python -m docs.generate [--write]: name the generated pages that differ from the code, or write them."""

import argparse
import os
import sys
from pathlib import Path

import django

DOCS = Path(__file__).parents[1]
ENVIRONMENT = {"SECRET_KEY": "only-for-docs", "DATABASE_URL": "postgresql:///only-for-docs", "GPU_PORTAL_LOCAL": "1"}
"""What the settings require; nothing is opened."""


def pages() -> dict[Path, str]:
    """Return the text of each generated page. Django has to be set up."""
    from allocations.management.commands import phases
    from docs.generate import chart, commands, guards, reasons, rest, settings

    made = {
        "reference/rest.md": rest.operations(),
        "reference/commands.md": commands.page(),
        "reference/phases.md": phases.page(),
        "reference/reasons.md": reasons.page(),
        "evidence/policies.md": guards.page(),
        "operate/settings.md": settings.page(),
        "operate/chart.md": chart.page(),
    }
    return {DOCS / name: text for name, text in made.items()}


def main() -> int:
    """Return the exit status: 1 if a page differs and is not written."""
    parser = argparse.ArgumentParser(prog="python -m docs.generate", description="The generated pages of the docs.")
    parser.add_argument("--write", action="store_true", help="write the pages that differ")
    is_written = parser.parse_args().write
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    stale = {path: text for path, text in pages().items() if not path.exists() or path.read_text("utf-8") != text}
    for path, text in stale.items():
        if is_written:
            path.write_text(text, encoding="utf-8")
        print(f"{'wrote' if is_written else 'differs from the code'}: {path.relative_to(DOCS.parent)}")
    return 1 if stale and not is_written else 0


if __name__ == "__main__":
    sys.exit(main())
