"""How long each part of the suite took when it last ran in this checkout, as tables of docs/contribute/tests.md.

    python -m tests.minutes              prints them; --write: into the page
    python -m tests.minutes --long       writes the line of the last `make test-long` into the page

Parts are recorded by ``--part NAME``: an option of pytest, which times each test with its set-up and teardown, and of
this command, which times another one: python -m tests.minutes --part lint make lint
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.cluster.guide_tables import filled

REPOSITORY = Path(__file__).parents[1]
RECORDS = REPOSITORY / ".local" / "minutes"
PAGE = REPOSITORY / "docs" / "contribute" / "tests.md"
BUILD, START, STOP = "build of the control plane", "start of the stack", "stop of the stack"
TOGETHER = "all tests"
TEST = ("lint", START, TOGETHER, STOP)
"""The parts of `make test`, in order; the build is told apart, since it is kept."""
AT_ONCE = ("fast part", "cluster", "hostile member", "faults")
"""The fast part runs beside the others."""
APART = (BUILD, "hardware and supervisor")
LONG = ("fast part, full sizes", "hostile member, 10 minutes", "50 kills, 20 minutes")
SLOWEST = 10


@dataclass(frozen=True)
class Part:
    """``tests`` has the seconds of a test's ``setup``, ``call`` and ``teardown``, by its id."""

    seconds: float
    tests: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def share(self, when: str) -> str:
        """Return how much of the tests' time was theirs, in words."""
        spent = sum(sum(each.values()) for each in self.tests.values())
        return f"{sum(each.get(when, 0.0) for each in self.tests.values()) / spent:.0%}" if spent else ""


class Recorder:
    """A pytest plugin that records a part; of several processes, the one that has the others' reports."""

    def __init__(self, part: str) -> None:
        self._part, self._began = part, time.monotonic()
        self._tests: dict[str, dict[str, float]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._tests.setdefault(report.nodeid, {})[report.when] = report.duration

    def pytest_sessionfinish(self) -> None:
        record(self._part, Part(time.monotonic() - self._began, self._tests))


def record(name: str, part: Part) -> None:
    RECORDS.mkdir(parents=True, exist_ok=True)
    (RECORDS / f"{name}.json").write_text(json.dumps(asdict(part)), encoding="utf-8")


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Record the block as a part."""
    began = time.monotonic()
    yield
    record(name, Part(time.monotonic() - began))


def recorded(names: Sequence[str]) -> dict[str, Part]:
    files = {name: RECORDS / f"{name}.json" for name in names}
    return {name: Part(**json.loads(file.read_text("utf-8"))) for name, file in files.items() if file.exists()}


def tables() -> str:
    """Return the parts with their minutes, then the slowest tests."""
    ours, at_once, apart = recorded(TEST), recorded(AT_ONCE), recorded(APART)
    whole = Part(sum(part.seconds for part in ours.values()))
    rows = [
        (
            name,
            _minutes(part),
            f"{len(part.tests):,}" if part.tests else "",
            part.share("setup"),
            part.share("teardown"),
        )
        for name, part in {**ours, "**`make test`**": whole, **at_once, **apart}.items()
    ]
    slowest = sorted(
        (
            (sum(each.values()), name, test, each)
            for name, part in {**ours, **at_once, **apart}.items()
            for test, each in part.tests.items()
        ),
        key=lambda one: one[0],
        reverse=True,
    )
    return "\n".join(
        (
            *_table(("part", "minutes", "tests", "set-up", "teardown"), rows),
            "",
            *_table(
                ("slowest tests", "part", "seconds", "set-up", "teardown"),
                [
                    (f"`{test.removeprefix('tests/')}`", name, *(f"{s:.0f}" for s in (took, *_around(each))))
                    for took, name, test, each in slowest[:SLOWEST]
                ],
            ),
            "",
        )
    )


def _around(test: Mapping[str, float]) -> tuple[float, float]:
    return test.get("setup", 0.0), test.get("teardown", 0.0)


def _minutes(part: Part) -> str:
    return f"{part.seconds / 60:.1f}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for cells in (heads, ["---", *["---:"] * (len(heads) - 1)], *rows):
        yield f"| {' | '.join(cells)} |"


def last_long() -> str:
    """Return commit, date and minutes of the long parts."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.strip()
    took = "; ".join(
        f"{name}: {len(part.tests):,} {'test' if len(part.tests) == 1 else 'tests'} in {_minutes(part)} minutes"
        for name, part in recorded(LONG).items()
    )
    return f"Last passed on {datetime.now(UTC):%Y-%m-%d} at commit `{commit}`. {took}.\n"


def _fill(mark: str, text: str) -> None:
    PAGE.write_text(filled(PAGE, mark, PAGE.read_text("utf-8"), text), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.minutes", description="How long the parts of the suite took."
    )
    parser.add_argument(
        "--write", action="store_true", help="into docs/contribute/tests.md, instead of onto the screen"
    )
    parser.add_argument("--long", action="store_true", help="write the line of the last `make test-long` there")
    parser.add_argument("--part", metavar="NAME", help="record the command as this part")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if arguments.part:
        with timed(arguments.part):
            return subprocess.run(arguments.command, check=False).returncode
    if arguments.long:
        sys.stdout.write(last_long())
        _fill("long", last_long())
    elif arguments.write:
        _fill("minutes", tables())
    else:
        sys.stdout.write(tables())
    return 0


if __name__ == "__main__":
    sys.exit(main())
