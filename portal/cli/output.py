"""Output of the commands: tables for people, the REST answer itself in the other formats."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import click
from click.core import ParameterSource

from portal.cli import config, printable, times
from portal.cli.client import Client
from portal.cli.option_types import TextUpTo
from portal.cli.output_format import Named, Output, output_option
from portal.yaml_text import to_yaml

Columns = Mapping[str, Callable[[dict[str, Any]], object]]
"""The columns of a table by their heads."""
request_timeout_option = click.option(
    "--request-timeout",
    type=times.SECONDS,
    help="How long the portal may take for an answer, repeats included: 30s, 2m. Else 2m.",
)


def with_client(named: Named | None = None, *formats: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options `--output` and `--request-timeout` to a command, and passes the client
    of the configured portal as first argument. ``named`` says what `-o name` prints, if the command prints something
    with a name; ``formats`` are those that only this command has.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def wrapper(*args: Any, output: Output, request_timeout: float | None, **kwargs: Any) -> None:
            refuse_unusable_text(click.get_current_context())
            command(Client(config.load(), output=output, patience_s=request_timeout), *args, **kwargs)

        return output_option(named, *formats)(request_timeout_option(wrapper))

    return decorate


def refuse_unusable_text(context: click.Context) -> None:
    """Raise click.BadParameter for a given text that is empty, as of a variable that is not set, or not in UTF-8. Only
    free text may be empty.
    """
    for each in context.command.params:
        if context.get_parameter_source(str(each.name)) is not ParameterSource.COMMANDLINE:
            continue
        value = context.params.get(str(each.name))
        for text in value if isinstance(value, tuple) else (value,):
            if text == "" and not isinstance(each.type, TextUpTo):
                raise click.BadParameter("It is empty. Is a variable not set?", context, each)
            if isinstance(text, str) and not printable.is_utf8(text):
                raise click.BadParameter("It is not text in UTF-8.", context, each)


def say(client: Client, answer: Any, text: Callable[[], str]) -> None:
    """Print the answer in the chosen format; ``text`` renders it for people."""
    output = client.output
    match output.format:
        case "json":
            click.echo(printable.as_json(answer))
        case "yaml":
            click.echo(to_yaml(answer), nl=False)
        case "jsonpath":
            click.echo(output.template.render(answer), nl=False)
        case "name":
            kind, key = output.named
            for row in answer.get("results", [answer]):
                if row[key] is not None:
                    click.echo(f"{kind}/{row[key]}")
        case _:
            click.echo(text())


def say_rows(client: Client, rows: list[dict[str, Any]], columns: Columns, *, wide: Columns, empty: str) -> None:
    """Print rows as a table, with the columns ``wide`` too if asked for, or in another format."""
    shown = {**columns, **wide} if client.output.format == "wide" else columns
    cells = [[cell(row) for cell in shown.values()] for row in rows]
    say(client, {"results": rows}, lambda: table(list(shown), cells, empty))


def table(head: Sequence[str], rows: Sequence[Sequence[object]], empty: str = "Nothing.") -> str:
    """Return a table with columns as wide as their widest cell."""
    if not rows:
        return empty
    cells = [list(head), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
    )
