"""The option `--output`: text, wide, json, yaml, name or jsonpath=TEMPLATE, as kubectl's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
from click.shell_completion import CompletionItem

FORMATS = ("text", "wide", "json", "yaml", "name")
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
    name = "format"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Output:
        if isinstance(value, Output):
            return value
        text = str(value).removeprefix("=")  # -o=json
        if text.startswith(JSONPATH):
            return Output("jsonpath", text.removeprefix(JSONPATH))
        if text in FORMATS:
            return Output(text)
        return self.fail(f"{text} is none of {', '.join(FORMATS)}, jsonpath=TEMPLATE.", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(each) for each in (*FORMATS, JSONPATH) if each.startswith(incomplete)]


def output_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option `--output` to a command."""
    return click.option("-o", "--output", type=OutputType(), default="text", metavar="FORMAT", help=HELP)(command)
