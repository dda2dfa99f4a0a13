"""When a start has failed, and what to say then: one rule for `make demo` and `make up`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deploy.local.errors import LocalError

WITHIN_S = 600.0  # a server that hangs is started again each minute: its tries take about as long
DAY_OF_HISTORY_S = 10.0  # 90 days took three minutes on two busy processors
HOPELESS_STARTS = 7  # with the supervisor's back-off, about 13 s of failing at once
UP = ("ready", "done")
CAUSES = (
    ("No space left on device", "The disk is full. Free some, and start again."),
    ("Read-only file system", "A folder cannot be written. Clone onto a disk that can."),
    ("oo many open files", "Too few files may be open at once. Allow more, and start again: ulimit -n 4096"),
    ("annot allocate memory", "The machine is short of memory. Stop other programs, and start again."),
    ("exited with -9", "Usually the machine is short of memory. Stop other programs, and start again."),
    ("ddress already in use", "Another program has taken the port meanwhile. Start again: other ports are chosen."),
    ("user does not exist", "PostgreSQL needs an entry in /etc/passwd for this user. Start as another user."),
    ("incompatible with server", "The data are of another version of PostgreSQL. Begin with new data: rm -r {home}"),
    ("xec format error", "The programs are of another kind of machine. Build them again: rm -r {programs}"),
)
"""Text at the end of the log, or how the process exited, and what usually causes it with what to do."""
UNKNOWN = "If it fails again, begin with new data: rm -r {home}"
SLOW = "Usually the machine is busy. Start again: it goes on with what is there."


def raise_if_failed(
    rows: Sequence[Mapping[str, Any]], starts_before: Mapping[str, int], programs: Path, *, is_late: bool
) -> None:
    """Raise LocalError with the reason once a start has failed; `programs` is the folder of the seven programs."""
    if row := failed_row(rows, starts_before, is_late=is_late):
        raise LocalError(explain(row, programs))


def failed_row(
    rows: Sequence[Mapping[str, Any]], starts_before: Mapping[str, int], *, is_late: bool
) -> Mapping[str, Any] | None:
    """Return a row that keeps failing, or when it is late one that is not up; None while there is hope.

    A row that was stopped by command is not missed.
    """
    missing = [row for row in rows if row["phase"] not in (*UP, "stopped")]
    failing = [row for row in missing if row["phase"] == "backing off"]
    hopeless = [row for row in failing if row["starts"] >= starts_before.get(row["name"], 0) + HOPELESS_STARTS]
    if not hopeless and not is_late:
        return None
    # A row that was started: the others wait for it.
    return next((row for row in [*hopeless, *missing] if row["starts"]), missing[0] if missing else None)


def explain(row: Mapping[str, Any], programs: Path) -> str:
    """Return which row failed, the end of its log, and what usually causes that."""
    log = Path(row["log"])
    advice = usual_cause(row, _last_lines(log)).format(home=log.parents[1], programs=programs)
    times = f"{row['phase']}, started {row['starts']} times"
    return f"{row['name']} does not become ready ({times}); {tail(log)}\n{advice}"


def usual_cause(row: Mapping[str, Any], text: str) -> str:
    """Return what usually causes a failure with `text` at the end of its log."""
    signs = f"{text}\nexited with {row['exit']}"
    default = UNKNOWN if row["starts"] >= HOPELESS_STARTS else SLOW
    return next((advice for sign, advice in CAUSES if sign in signs), default)


def tail(log: Path) -> str:
    """Return the end of a log, with its path, for an error message."""
    if not log.exists():
        return f"it wrote no log at {log}"
    return "\n".join([f"{log} ends:", *(f"  {line[:300]}" for line in _last_lines(log).splitlines())])


def _last_lines(log: Path, lines: int = 20) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""
