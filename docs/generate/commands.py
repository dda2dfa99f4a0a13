"""The page of the gpu-portal command: every command with its arguments and options, from the code."""

import inspect
from collections.abc import Iterator

import click

from docs.generate.markdown import table
from portal.cli.main import cli

HEAD = """# Commands of `gpu-portal`

For people and pipelines: every command with its arguments and options. Written by `make reference`; the
same is in `gpu-portal COMMAND --help`. How to use them is in [the command line](cli.md).

"""
UNWRAPPED = "\b"
"""Begins a paragraph of help whose lines click leaves as they are."""


def page() -> str:
    return HEAD + "\n".join(_section(name, command) for name, command in _commands("gpu-portal", cli))


def _commands(name: str, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    for word, command in sorted(group.commands.items()):
        if command.hidden:
            continue
        if isinstance(command, click.Group):
            yield from _commands(f"{name} {word}", command)
        else:
            yield f"{name} {word}", command


def _section(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    help_ = "\n\n".join(
        f"```text\n{part.lstrip(UNWRAPPED).strip()}\n```" if part.startswith(UNWRAPPED) else part
        for part in inspect.cleandoc(command.help or "").split("\n\n")
    )
    rows = []
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            record = parameter.get_help_record(context)
            if record:
                rows.append((f"`{record[0]}`", record[1]))
    text = f"## {name}\n\n```text\n{usage}\n```\n\n{help_}\n\n{table(('option', 'meaning'), rows)}"
    return text.rstrip("\n") + "\n"
