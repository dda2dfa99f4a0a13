"""The option `--output`: text, wide, json, yaml, name or jsonpath=TEMPLATE, as kubectl's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
from click.shell_completion import CompletionItem

FORMATS = ("text", "wide", "json", "yaml", "name")
CSV = "csv"
JSONPATH = "jsonpath="
HELP = "text, wide (more columns), json, yaml, name, or jsonpath='{.id}' as kubectl writes it."


@dataclass(frozen=True)
class Output:
    """How to print an answer. ``template`` is that of the format ``jsonpath``."""

    format: str = "text"
    template: str = ""

    @property
    def is_text(self) -> bool:
        return self.format in ("text", "wide")


TEXT = Output()


class OutputType(click.ParamType):
    """A format of ``FORMATS``, a template, or one of ``more``."""

    name = "format"

    def __init__(self, *more: str) -> None:
        self._formats = (*FORMATS, *more)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Output:
        if isinstance(value, Output):
            return value
        text = str(value).removeprefix("=")  # -o=json
        if text.startswith(JSONPATH):
            return Output("jsonpath", text.removeprefix(JSONPATH))
        if text in self._formats:
            return Output(text)
        return self.fail(f"{text} is none of {', '.join(self._formats)}, jsonpath=TEMPLATE.", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(each) for each in (*self._formats, JSONPATH) if each.startswith(incomplete)]


def output_option(command: Callable[..., Any], *more: str) -> Callable[..., Any]:
    """Add the option `--output` to a command, with ``more`` formats than all commands have."""
    words = "".join(f"{name}, " for name in more) + HELP
    return click.option("-o", "--output", type=OutputType(*more), default="text", metavar="FORMAT", help=words)(command)
