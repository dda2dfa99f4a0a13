"""Output of the commands: tables for people, the REST answer itself in the other formats."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import click

from portal.cli import config, jsonpath_template
from portal.cli.client import Client
from portal.cli.output_format import Output, output_option
from portal.yaml_text import to_yaml

Columns = Mapping[str, Callable[[dict[str, Any]], object]]
"""The columns of a table by their heads."""
Named = tuple[str, str]
"""The kind of a row in `-o name`, and the field that identifies it."""


def with_client(command: Callable[..., None], *formats: str) -> Callable[..., None]:
    """Add the option `--output` to a command, and pass the client of the configured portal as first argument.
    ``formats`` are those that only this command has.
    """

    @wraps(command)
    def wrapper(*args: Any, output: Output, **kwargs: Any) -> None:
        command(Client(config.load(), output=output), *args, **kwargs)

    return output_option(wrapper, *formats)


def say(client: Client, answer: Any, text: Callable[[], str], named: Named | None = None) -> None:
    """Print the answer in the chosen format; ``text`` renders it for people, ``named`` says what `-o name` prints."""
    output = client.output
    match output.format:
        case "json":
            click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
        case "yaml":
            click.echo(to_yaml(answer), nl=False)
        case "jsonpath":
            click.echo(jsonpath_template.render(output.template, answer), nl=False)
        case "name":
            _print_names(answer, named)
        case _:
            click.echo(text())


def say_rows(
    client: Client,
    rows: list[dict[str, Any]],
    columns: Columns,
    *,
    wide: Columns,
    named: Named,
    empty: str,
) -> None:
    """Print rows as a table, with the columns ``wide`` too if asked for, or in another format."""
    shown = {**columns, **wide} if client.output.format == "wide" else columns
    cells = [[cell(row) for cell in shown.values()] for row in rows]
    say(client, {"results": rows}, lambda: table(list(shown), cells, empty), named)


def _print_names(answer: Any, named: Named | None) -> None:
    if named is None:
        raise click.BadParameter("This command prints nothing that has a name.", param_hint="--output")
    kind, key = named
    for row in answer.get("results", [answer]):
        click.echo(f"{kind}/{row[key]}")


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
