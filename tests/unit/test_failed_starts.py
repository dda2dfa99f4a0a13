"""When `make demo` and `make up` end a start, and what they say."""

from pathlib import Path
from typing import Any

import pytest

from deploy.local import failed_start
from deploy.local.errors import LocalError
from deploy.local.failed_start import HOPELESS_STARTS, failed_row, raise_if_failed, usual_cause


def row(name: str, phase: str, starts: int = 1, **facts: Any) -> dict[str, Any]:
    return {"name": name, "phase": phase, "starts": starts, "exit": 1, "log": "/nowhere/logs/x.log", **facts}


READY, DONE, WAITS = row("etcd", "ready"), row("migrate", "done"), row("web", "waiting", 0)


@pytest.mark.parametrize(
    ("rows", "is_late", "failed"),
    [
        ([READY, DONE], True, None),
        ([READY, row("worker", "backing off", HOPELESS_STARTS - 1)], False, None),
        ([WAITS, row("worker", "backing off", HOPELESS_STARTS)], False, "worker"),
        ([WAITS, row("worker", "starting", HOPELESS_STARTS)], False, None),
        ([WAITS, row("worker", "starting", 2)], True, "worker"),
        ([READY, WAITS], True, "web"),
        ([READY, row("watcher", "stopped", 9)], True, None),
    ],
    ids=["up", "tries left", "no tries left", "the last try", "late", "late and nothing started", "stopped by command"],
)
def test_a_start_fails_by_tries_or_by_its_deadline(
    rows: list[dict[str, Any]], is_late: bool, failed: str | None
) -> None:
    found = failed_row(rows, {}, is_late=is_late)
    assert (found and found["name"]) == failed


def test_tries_before_this_start_do_not_count() -> None:
    again = [row("worker", "backing off", HOPELESS_STARTS + 2)]
    assert failed_row(again, {"worker": 3}, is_late=False) is None


def test_a_failed_start_says_which_row_the_end_of_its_log_and_what_usually_causes_it(tmp_path: Path) -> None:
    log = tmp_path / "home" / "logs" / "postgres.log"
    log.parent.mkdir(parents=True)
    log.write_text("early line\n" * 30 + "FATAL: could not write: No space left on device\n")
    with pytest.raises(LocalError) as error:
        raise_if_failed([row("postgres", "backing off", 7, log=str(log))], {}, tmp_path, is_late=False)
    first, *lines, advice = str(error.value).splitlines()
    assert first == f"postgres does not become ready (backing off, started 7 times); {log} ends:"
    assert (len(lines), lines[-1].strip()) == (20, "FATAL: could not write: No space left on device")
    assert advice == "The disk is full. Free some, and start again."


@pytest.mark.parametrize(
    ("facts", "text", "advice"),
    [
        ({"exit": -9}, "", "short of memory"),
        ({"starts": 7}, "bind: address already in use", "other ports"),
        ({"starts": 7}, "could not look up effective user ID 1234: user does not exist", "/etc/passwd"),
        ({"starts": 7}, "Traceback", failed_start.UNKNOWN),
        ({"starts": 2}, "listening", failed_start.SLOW),
    ],
)
def test_what_usually_causes_a_failure_follows_from_its_log_and_its_exit(
    facts: dict[str, Any], text: str, advice: str
) -> None:
    assert advice in usual_cause(row("any", "backing off", **facts), text)
