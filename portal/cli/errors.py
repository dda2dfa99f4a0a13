"""Errors of the commands, on standard error: sentences, or problem documents (RFC 9457) with `--output json`."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import click

from portal.cli import hints, printable

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 and the number of the signal, as of a shell."""


class CommandError(click.ClickException):
    """An error that the command found by itself. ``reason`` is for machines; exit code 1."""

    def __init__(self, detail: str, *, reason: str, hint: str = "") -> None:
        self.problem: dict[str, Any] = document(reason, detail, hint)
        super().__init__(f"{detail} {hint}".strip())


class ProblemError(click.ClickException):
    """An answer of the portal that is not 2xx; exit code 1. ``problem`` is its document, unchanged."""

    def __init__(self, problem: dict[str, Any]) -> None:
        self.problem = problem
        super().__init__(words(printable.one_lines(problem)))


class NoAnswerError(CommandError):
    """The portal gave no answer, or none that it explains: the same may succeed later."""

    exit_code = 5


class BusyError(ProblemError):
    """The portal says that it cannot answer now."""

    exit_code = NoAnswerError.exit_code


def document(reason: str, detail: str, hint: str = "") -> dict[str, Any]:
    """Return an error of the command in the form of the portal's problems; it has no HTTP status."""
    kind = f"urn:gpu-portal:problem:{reason}"
    return {"type": kind, "title": "The command failed", "detail": detail, "reason": reason, "hint": hint}


def words(problem: dict[str, Any]) -> str:
    """Return a problem as text: what happened, why, and which command helps."""
    lines = [problem.get("detail") or problem.get("title") or f"The portal answered {problem.get('status')}."]
    if errors := problem.get("errors"):
        lines = [f"{hints.option_of(field)}: {sentence}" for field in errors for sentence in errors[field]]
    if hint := problem.get("hint"):
        lines.append(hint)
    for found in problem.get("dimensions", [])[1:]:
        lines.append(f"Also: {found['detail']}")
    for other in problem.get("alternatives", []):
        price = f", {other['price']} in all" if other.get("price") else ""
        lines.append(f"Works ({other['fits']}): {other['count']} × {other['offering']}{price}")
    return "\n".join(map(hints.in_commands, lines))


def show(error: click.ClickException, *, as_json: bool) -> None:
    """Print an error to standard error: as click does, or as a JSON document."""
    if not as_json:
        error.show()
        return
    problem = getattr(error, "problem", None) or document("usage", error.format_message())
    click.echo(printable.as_json(problem), err=True)


def tell(detail: str, *, reason: str, as_json: bool, **more: str) -> None:
    """Print to standard error why a command ends early: the sentence, or a JSON document, with ``more`` members."""
    said = printable.as_json({**document(reason, detail), **more}) if as_json else detail
    click.echo(said, err=True)


def is_json_requested(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for JSON. Also true where the rest of it cannot be parsed."""
    asked = ("-ojson", "-o=json", "--output=json")
    pairs = pairwise([*arguments, ""])
    return any(word in asked or (word in ("-o", "--output") and value == "json") for word, value in pairs)
