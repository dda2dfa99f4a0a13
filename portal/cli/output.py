"""Output of the commands: tables for people, the REST answer with `--output json`."""

import json
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import click

from portal.cli import config
from portal.cli.client import Client


def with_client(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option `--output` to a command, and pass the client of the configured portal as first argument."""

    @click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to print.")
    @wraps(command)
    def wrapper(*args: Any, output: str, **kwargs: Any) -> None:
        command(Client(config.load(), as_json=output == "json"), *args, **kwargs)

    return wrapper


def say(client: Client, answer: Any, text: Callable[[], str]) -> None:
    """Print the answer as JSON, or as `text` renders it."""
    click.echo(json.dumps(answer, indent=2, ensure_ascii=False) if client.as_json else text())


def table(head: Sequence[str], rows: Sequence[Sequence[object]], empty: str = "Nothing.") -> str:
    """Return a table with columns as wide as their widest cell."""
    if not rows:
        return empty
    cells = [list(head), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
    )


def moment(text: str | None) -> str:
    """Return a time of the API, to the second."""
    return text[:19].replace("T", " ") + "Z" if text else "-"
