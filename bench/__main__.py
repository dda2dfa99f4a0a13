"""python -m bench [--only PART] [--json FILE] and sizes: benchmarks of the portal against a bare client.

Prints a table, and writes JSON. Starts a cluster with stores and portal of its own, or uses that of
GPU_PORTAL_TEST_HOME, and stops what it started. Both sides alternate (A B, B A, ...), so other load of the machine
affects both. First the bare client runs against itself: if the interval of that ratio is wider than 10 %, the machine
is too noisy for a conclusion.

Parts: ``holds``, ``throughput``, ``rate``, ``growth``, ``observed``, and ``catalogue`` and ``rollups``, which need no
cluster and start none. Each takes less than ten minutes by itself at its usual size.
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

from bench import curves, report
from deploy.local.home import REPOSITORY
from deploy.local.runner import Local
from tests import services
from tests.stack import DEADLINES

ON_CLUSTER = ("holds", "throughput", "rate", "growth", "observed")
WITHOUT_CLUSTER = ("catalogue", "rollups")
PARTS = (*ON_CLUSTER, *WITHOUT_CLUSTER)
CURVES = REPOSITORY / "docs" / "appendix" / "curves"
MACHINE = {"python": platform.python_version(), "processors": os.cpu_count() or 0}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="The portal beside a bare client.")
    parser.add_argument("--rounds", type=int, default=15, help="holds per side and path (15)")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part, or these; all unless given")
    parser.add_argument("--rows", type=int, default=300_000, help="rows of usage in a year, for rollups (300000)")
    parser.add_argument("--requests", type=int, default=1000, help="requests at once, for throughput (1000)")
    parser.add_argument("--teams", type=int, default=20, help="teams that request, for throughput and rate (20)")
    parser.add_argument("--seconds", type=int, default=120, help="for which requests arrive, for rate (120)")
    parser.add_argument("--live", type=int, default=1000, help="live allocations, for growth (1000)")
    parser.add_argument("--ended", type=int, default=1_000_000, help="ended allocations, for growth (1000000)")
    parser.add_argument("--objects", type=int, default=50_000, help="observed objects, for observed (50000)")
    parser.add_argument("--draw", action="store_true", help="draw growth and observed into docs/appendix/curves")
    parser.add_argument("--json", type=Path, default=REPOSITORY / ".local" / "bench.json")
    arguments = parser.parse_args()
    parts = arguments.only or list(PARTS)
    os.environ |= DEADLINES
    document: dict[str, Any] = {"machine": MACHINE, "rounds": arguments.rounds}
    if on_cluster := [part for part in parts if part not in WITHOUT_CLUSTER]:
        document |= _on_cluster(on_cluster, arguments)
    if others := [part for part in parts if part in WITHOUT_CLUSTER]:
        without = _without_cluster_in_subprocess if on_cluster else _without_cluster
        document |= without(others, arguments.rounds, arguments.rows)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(document, indent=2) + "\n")
    if arguments.draw:
        curves.draw(document, CURVES)
    print(report.table(document))  # noqa: T201
    return 0


def _on_cluster(parts: Sequence[str], sizes: argparse.Namespace) -> dict[str, Any]:
    if home := os.environ.get("GPU_PORTAL_TEST_HOME"):
        return _at(Path(home), parts, sizes)
    with tempfile.TemporaryDirectory(prefix="gpu-portal-") as folder:
        return _at(Path(folder), parts, sizes)


def _at(home: Path, parts: Sequence[str], sizes: argparse.Namespace) -> dict[str, Any]:
    local = Local(home, say=lambda line: print(line, file=sys.stderr))  # noqa: T201
    keep = local.is_up()
    local.up()
    try:
        os.environ |= {"DATABASE_OWNER_URL": local.home.owner_url(), **local.env()}
        _set_up()
        from bench import arrivals, growth, observed, run, throughput

        measure = {
            "holds": lambda: run.holds(local.home, sizes.rounds),
            "throughput": lambda: throughput.measure(local, sizes.requests, sizes.teams),
            "rate": lambda: arrivals.measure(local, sizes.seconds, sizes.teams),
            "growth": lambda: growth.measure(local, sizes.live, sizes.ended, sizes.rounds),
            "observed": lambda: observed.measure(local, sizes.objects),
        }
        return {part: measure[part]() for part in parts}
    finally:
        if not keep:
            local.down()


def _without_cluster(parts: Sequence[str], rounds: int, rows: int) -> dict[str, Any]:
    os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
    with services.running():
        _set_up()
        from bench import catalogue, rollups

        measure = {"catalogue": lambda: catalogue.measure(rounds), "rollups": lambda: rollups.measure(rounds, rows)}
        return {part: measure[part]() for part in parts}


def _without_cluster_in_subprocess(parts: Sequence[str], rounds: int, rows: int) -> dict[str, Any]:
    """Run the parts in a process of its own: this process is connected to the cluster's database, whose role cannot
    create another one.
    """
    stores = ("DATABASE_URL", "REDIS_URL", "KUBECONFIG")
    environment = {name: value for name, value in os.environ.items() if name not in stores}
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        words = (
            *(f"--only={part}" for part in parts),
            "--rounds",
            str(rounds),
            "--rows",
            str(rows),
            "--json",
            file.name,
        )
        command = [sys.executable, "-m", "bench", *words]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        document = json.loads(Path(file.name).read_text())
        return {part: document[part] for part in parts}


def _set_up() -> None:
    import django

    os.environ["LOG_LEVEL"] = "WARNING"
    django.setup()


if __name__ == "__main__":
    sys.exit(main())
