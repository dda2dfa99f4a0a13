"""python -m tests.bench [--only PART] [--rounds N] [--json FILE]: the portal beside a bare client, as table and JSON.

Starts a cluster with stores and portal of its own, or uses that of GPU_PORTAL_TEST_HOME, and takes down what it
started. Both sides alternate (A B, B A, ...), so what else the machine does hits both. First the bare client runs
against itself: an interval of that ratio wider than 10 % means that the machine is too noisy for a claim.

Parts: ``holds``, ``watcher``, and ``catalogue``, which needs no cluster and by itself starts none.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from deploy.local.home import REPOSITORY
from deploy.local.runner import Local
from tests import services
from tests.stack import DEADLINES

PARTS = ("holds", "watcher", "catalogue")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="The portal beside a bare client.")
    parser.add_argument("--rounds", type=int, default=15, help="holds per side and path (15)")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part, or these; all unless given")
    parser.add_argument("--json", type=Path, default=REPOSITORY / ".local" / "bench.json")
    arguments = parser.parse_args()
    os.environ |= DEADLINES
    if arguments.only == ["catalogue"]:
        os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
        with services.running():
            return _measure(None, arguments)
    if given := os.environ.get("GPU_PORTAL_TEST_HOME"):
        return _run(Path(given), arguments)
    with tempfile.TemporaryDirectory(prefix="gpu-portal-") as folder:
        return _run(Path(folder), arguments)


def _run(home: Path, arguments: argparse.Namespace) -> int:
    local = Local(home, say=lambda line: print(line, file=sys.stderr))  # noqa: T201
    keep = local.is_up()
    local.up()
    try:
        os.environ |= local.env()
        return _measure(local, arguments)
    finally:
        if not keep:
            local.down()


def _measure(local: Local | None, arguments: argparse.Namespace) -> int:
    import django

    os.environ["LOG_LEVEL"] = "WARNING"
    django.setup()
    from tests.bench import catalogue, report, run, watching

    document: dict[str, Any] = {"machine": run.machine(), "rounds": arguments.rounds}
    for part in arguments.only or PARTS:
        if part == "catalogue":
            document[part] = catalogue.measured(arguments.rounds)
        elif local is not None:
            document[part] = run.holds(local.home, arguments.rounds) if part == "holds" else watching.measured(local)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(document, indent=2) + "\n")
    print(report.table(document))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
