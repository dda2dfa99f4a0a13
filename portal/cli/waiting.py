"""Waits for a phase of an allocation, and says what stays requested when that is interrupted."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from portal.cli import printable
from portal.cli.client import Client
from portal.cli.errors import INTERRUPTED, BusyError, NoAnswerError, ProblemError, tell
from portal.cli.output import say
from portal.cli.times import moment

LOOK_EVERY_S = 1.0
LONGER, MOST_LOOKS = 1.5, 10
"""Of a pause: how much longer it gets while nothing changes, and at most how many times the first."""
SAID_AGAIN_S = 300
"""A wait says where it stands at least so often: CI systems end a step that prints nothing for ten minutes."""
IN_PROGRESS_S = 3.0
"""How long an interrupt waits for a request that the portal still works on: whoever sent SIGINT soon sends SIGKILL."""
ENDED, LATE = 3, 4
"""Exit codes of waiting: ended before the awaited phase; timed out."""
TERMINATED = 143
REASON = "Interrupted while it was waited for."
Row = dict[str, Any]

release_on_interrupt_option = click.option(
    "--release-on-interrupt", is_flag=True, help="On Ctrl-C or SIGTERM while waiting, release it."
)


class Terminated(KeyboardInterrupt):
    """SIGTERM, which CI systems, Kubernetes and timeout(1) send."""


@dataclass
class Awaited:
    """An allocation that is waited for, as it was last seen.

    ``find`` returns it again where the portal did not answer yet, and ``unseen`` tells people how to. ``releases``: an
    interrupt releases it.
    """

    find: Callable[[Client], Row]
    unseen: str
    releases: bool = False
    row: Row | None = None


@contextmanager
def interruptible(client: Client, awaited: Awaited) -> Iterator[None]:
    """On Ctrl-C or SIGTERM release what is waited for or say what stays requested, and exit with 130 or 143."""
    try:
        with _sigterm_interrupts():
            yield
    except KeyboardInterrupt as stop:
        (_release if awaited.releases else _tell_what_stays)(client.quick(), awaited)
        sys.exit(TERMINATED if isinstance(stop, Terminated) else INTERRUPTED)


def finish(client: Client, awaited: Awaited, phase: str, timeout: float, text: Callable[[Row], str]) -> None:
    """Wait, print the row as `text` renders it, and exit: 0 if it reached `phase`.

    Until then it says on standard error what changes, and looks ever less often while nothing does. That the portal
    does not answer for a while, as when it is upgraded, changes nothing of what is waited for.
    """
    deadline = time.monotonic() + timeout
    row = awaited.row = awaited.row or awaited.find(client)
    standing, said, said_at, pause = _standing(row), "", 0.0, LOOK_EVERY_S
    while True:
        if standing != said or time.monotonic() - said_at > SAID_AGAIN_S:
            if client.output.format != "json":  # whose standard error is a document or nothing
                click.echo(standing, err=True)
            pause = LOOK_EVERY_S if standing != said else pause
            said, said_at = standing, time.monotonic()
        if row["phase"] in (phase, "ended") or time.monotonic() >= deadline:
            break
        time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
        pause = longer(pause)
        try:
            row = awaited.row = client.get(f"allocations/{row['id']}")
            standing = _standing(row)
        except (NoAnswerError, BusyError) as error:
            standing = f"{error.format_message()} Trying again."
    say(client, row, lambda: text(row))
    if row["phase"] == "ended" != phase:
        sys.exit(ENDED)
    if row["phase"] != phase:
        _tell(client, "timeout", f"Not {phase} within {timeout:g} s. {_what_stays(row)}", row)
        sys.exit(LATE)


def longer(pause: float) -> float:
    """Return the pause after one in which nothing changed."""
    return min(pause * LONGER, LOOK_EVERY_S * MOST_LOOKS)


def _standing(row: Row) -> str:
    """Return the phase, the position in the queue, and why: ``train (…) is queued, 2 of 5: It starts when 1 more GPU is
    free.``
    """
    place = f", {row['queue']['position']} of {row['queue']['of']}" if row.get("queue") else ""
    why = f": {printable.one_line(row['message'])}" if row["message"] else ""
    return f"{row['name']} ({row['id']}) is {row['phase']}{place}{why}"


def _tell(client: Client, reason: str, detail: str, row: Row | None) -> None:
    which = {"allocation": row["id"]} if row else {}
    tell(detail, reason=reason, as_json=client.output.format == "json", **which)


def _tell_what_stays(client: Client, awaited: Awaited) -> None:
    if awaited.row is None:
        _tell(client, "interrupted", f"Interrupted before the portal answered. {awaited.unseen}", None)
    else:
        _tell(client, "interrupted", f"Interrupted. {_what_stays(awaited.row)}", awaited.row)


def _release(client: Client, awaited: Awaited) -> None:
    """Release it; if that fails, say how to."""
    try:
        row = awaited.row = awaited.row or _found(client, awaited)
        awaited.row = client.post(f"allocations/{row['id']}/release", {"reason": REASON})
    except click.ClickException as error:
        stays = _what_stays(awaited.row) if awaited.row else awaited.unseen
        _tell(client, "not_released", f"Interrupted, and not released: {error.format_message()} {stays}", awaited.row)
    else:
        _tell(client, "interrupted", f"Interrupted. {_is_being_released(row)}", row)


def _found(client: Client, awaited: Awaited) -> Row:
    """Return what was requested, once the portal no longer answers that the request is in progress."""
    deadline = time.monotonic() + IN_PROGRESS_S
    while True:
        try:
            return awaited.find(client)
        except ProblemError as error:
            if error.problem.get("reason") != "in_progress" or time.monotonic() > deadline:
                raise
        time.sleep(LOOK_EVERY_S)


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Raise Terminated on SIGTERM, as Python raises KeyboardInterrupt on SIGINT."""

    def interrupt(number: int, frame: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _what_stays(row: Row) -> str:
    if row["phase"] in ("releasing", "ended"):
        return _is_being_released(row)
    charged = f"until {moment(row['ends_at'])} or its release" if row["held_at"] else "from when it is held"
    return (
        f"{row['name']} ({row['id']}) stays requested: it is {row['phase']}, and is charged {charged}. "
        f"Release it with `gpu-portal release {row['id']}`, or wait again with `gpu-portal wait {row['id']}`."
    )


def _is_being_released(row: Row) -> str:
    return (
        f"{row['name']} ({row['id']}) is being released; `gpu-portal wait {row['id']} --for ended` waits for its end."
    )
