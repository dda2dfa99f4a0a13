"""The option `--output`: text, wide, json, yaml, name or jsonpath=TEMPLATE, as kubectl's. What cannot be printed is
refused before the portal is asked.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
from click.shell_completion import CompletionItem

from portal.cli.jsonpath_template import Template, parse

FORMATS = ("text", "wide", "json", "yaml")
NAME = "name"
CSV = "csv"
JSONPATH = "jsonpath="
EMPTY = Template()
Named = tuple[str, str]
"""The kind of what a command prints, and the field that identifies it: of `-o name`."""


@dataclass(frozen=True)
class Output:
    """How to print an answer. ``template`` is that of the format ``jsonpath``, ``named`` that of ``name``."""

    format: str = "text"
    template: Template = EMPTY
    named: Named = ("", "")

    @property
    def is_text(self) -> bool:
        return self.format in ("text", "wide")


TEXT = Output()


class OutputType(click.ParamType):
    """A format of ``FORMATS``, ``name`` if what is printed has names, a template, or one of ``more``."""

    name = "format"

    def __init__(self, named: Named | None, *more: str) -> None:
        self._named = named
        self.formats = (*more, *FORMATS, *([NAME] if named else []))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Output:
        if isinstance(value, Output):
            return value
        text = str(value).removeprefix("=")  # -o=json
        if text.startswith(JSONPATH):
            try:
                return Output("jsonpath", parse(text.removeprefix(JSONPATH)))
            except ValueError as error:
                self.fail(f"That is no jsonpath template: {error}.", param, ctx)
        if text == NAME and self._named:
            return Output(NAME, named=self._named)
        if text in self.formats:
            return Output(text)
        if text == NAME:
            self.fail("This command prints nothing that has a name.", param, ctx)
        return self.fail(f"{text} is none of {', '.join(self.formats)}, jsonpath=TEMPLATE.", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(each) for each in (*self.formats, JSONPATH) if each.startswith(incomplete)]


def output_option(named: Named | None = None, *more: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the option `--output`, with ``more`` formats than all commands have."""
    type_ = OutputType(named, *more)
    words = ", ".join("wide (more columns)" if name == "wide" else name for name in type_.formats)
    words += ", or jsonpath='{.id}' as kubectl writes it."
    return click.option("-o", "--output", type=type_, default="text", metavar="FORMAT", help=words)
