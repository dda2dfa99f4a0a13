"""The portal on one version of Kubernetes: python -m tests.compat VERSION, or make compat VERSION=1.35.

Plays the tour, then runs the tests of PARTS on a control plane of that version. Whatever the outcome, it is recorded in
RESULTS, and the table of docs/operate/versions.md is written from it; the exit status is 1 if something failed.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deploy.local import build
from tests.support.cluster.guide_tables import filled

REPOSITORY = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "compat.json"
PAGE = REPOSITORY / "docs" / "operate" / "versions.md"
TOUR = "tour"
PARTS = {
    "attacks": ("test_attacks",),
    "both ways of mutation": ("test_mutations",),
    "holds": ("test_holds", "test_hold_quotas"),
    "slices": ("test_slices",),
    "preflight": ("test_preflight",),
}
Results = dict[str, dict[str, Any]]
"""Version of Kubernetes → its exact version, Kueue's, the date, and the outcome of each part."""


def main() -> int:
    version = sys.argv[1]
    os.environ["KUBERNETES"] = version
    pinned = build.versions()
    parts, began = {TOUR: _tour()}, time.monotonic()
    parts |= _tests()
    results: Results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results[version] = {
        "kubernetes": pinned[build.KUBERNETES],
        "kueue": pinned[build.KUEUE],
        "date": datetime.now(UTC).date().isoformat(),
        "minutes": round((time.monotonic() - began) / 60),
        "parts": parts,
    }
    RESULTS.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n")
    PAGE.write_text(filled(PAGE, "versions", PAGE.read_text(), table(results)))
    return int(any("failed" in outcome for outcome in parts.values()))


def _tour() -> str:
    with tempfile.TemporaryDirectory(prefix="gpu-portal-") as home:
        command = [sys.executable, "-m", "deploy.local", "tour", f"--home={home}"]
        played = subprocess.run(command, cwd=REPOSITORY, check=False)
    return "failed" if played.returncode else "passed"


def _tests() -> dict[str, str]:
    """Run the tests of all parts on one stack; return the outcome of each part."""
    files = [f"tests/cluster/{name}.py" for names in PARTS.values() for name in names]
    with tempfile.TemporaryDirectory(prefix="gpu-portal-") as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "tests.stack", *files, "-q", f"--junitxml={report}"]
        subprocess.run(command, cwd=REPOSITORY, check=False)
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    outcomes: dict[str, Counter[str]] = {part: Counter() for part in PARTS}
    part_of = {name: part for part, names in PARTS.items() for name in names}
    for case in cases:
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "left out" if "skipped" in kinds else "passed"
        outcomes[part_of[case.attrib["classname"].split(".")[2]]][outcome] += 1
    return {part: words(count) for part, count in outcomes.items()}


def words(count: Mapping[str, int]) -> str:
    """Return a part's outcome; one of which no test ran has failed."""
    if not sum(count.values()):
        return "failed: no test ran"
    return ", ".join(f"{count[kind]} {kind}" for kind in ("passed", "failed", "left out") if count.get(kind))


def table(results: Results) -> str:
    """Return the table of docs/operate/versions.md: a row for each part, a column for each version."""
    versions = sorted(results, key=lambda version: tuple(map(int, version.split("."))))
    columns = [results[version] for version in versions]
    rows = [
        ["", *(f"Kubernetes {column['kubernetes'].removeprefix('v')}" for column in columns)],
        ["---"] * (len(columns) + 1),
        ["Kueue", *(column["kueue"].removeprefix("v") for column in columns)],
        *([part, *(column["parts"].get(part, "not run") for column in columns)] for part in (TOUR, *PARTS)),
        ["last run", *(column["date"] for column in columns)],
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
