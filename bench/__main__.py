"""python -m bench [--only PART] [--rounds N] [--json FILE]: benchmarks of the portal against a bare client.

Prints a table, and writes JSON. Starts a cluster with stores and portal of its own, or uses that of
GPU_PORTAL_TEST_HOME, and stops what it started. Both sides alternate (A B, B A, ...), so other load of the machine
affects both. First the bare client runs against itself: if the interval of that ratio is wider than 10 %, the machine
is too noisy for a conclusion.

Parts: ``holds``, ``watcher``, and ``catalogue``, which needs no cluster and starts none.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import report
from deploy.local.home import REPOSITORY
from deploy.local.runner import Local
from tests import services
from tests.stack import DEADLINES

PARTS = ("holds", "watcher", "catalogue")
MACHINE = {"python": platform.python_version(), "processors": os.cpu_count() or 0}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="The portal beside a bare client.")
    parser.add_argument("--rounds", type=int, default=15, help="holds per side and path (15)")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part, or these; all unless given")
    parser.add_argument("--json", type=Path, default=REPOSITORY / ".local" / "bench.json")
    arguments = parser.parse_args()
    parts = arguments.only or list(PARTS)
    os.environ |= DEADLINES
    document: dict[str, Any] = {"machine": MACHINE, "rounds": arguments.rounds}
    if on_cluster := [part for part in parts if part != "catalogue"]:
        document |= _on_cluster(on_cluster, arguments.rounds)
    if "catalogue" in parts:  # with stores of its own, once the cluster is down
        document |= _catalogue_in_subprocess(arguments.rounds) if on_cluster else _catalogue(arguments.rounds)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(document, indent=2) + "\n")
    print(report.table(document))  # noqa: T201
    return 0


def _on_cluster(parts: Sequence[str], rounds: int) -> dict[str, Any]:
    if home := os.environ.get("GPU_PORTAL_TEST_HOME"):
        return _at(Path(home), parts, rounds)
    with tempfile.TemporaryDirectory(prefix="gpu-portal-") as folder:
        return _at(Path(folder), parts, rounds)


def _at(home: Path, parts: Sequence[str], rounds: int) -> dict[str, Any]:
    local = Local(home, say=lambda line: print(line, file=sys.stderr))  # noqa: T201
    keep = local.is_up()
    local.up()
    try:
        os.environ |= {"DATABASE_OWNER_URL": local.home.owner_url(), **local.env()}
        _set_up()
        from bench import run, watching

        measure = {"holds": lambda: run.holds(local.home, rounds), "watcher": lambda: watching.measure(local)}
        return {part: measure[part]() for part in parts}
    finally:
        if not keep:
            local.down()


def _catalogue(rounds: int) -> dict[str, Any]:
    os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
    with services.running():
        _set_up()
        from bench import catalogue

        return {"catalogue": catalogue.measure(rounds)}


def _catalogue_in_subprocess(rounds: int) -> dict[str, Any]:
    """Run the part in a process of its own: this process is connected to the cluster's database, whose role cannot
    create another one.
    """
    stores = ("DATABASE_URL", "REDIS_URL", "KUBECONFIG")
    environment = {name: value for name, value in os.environ.items() if name not in stores}
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        words = ("--only", "catalogue", "--rounds", str(rounds), "--json", file.name)
        command = [sys.executable, "-m", "bench", *words]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        return {"catalogue": json.loads(Path(file.name).read_text())["catalogue"]}


def _set_up() -> None:
    import django

    os.environ["LOG_LEVEL"] = "WARNING"
    django.setup()


if __name__ == "__main__":
    sys.exit(main())
