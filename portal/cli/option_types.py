"""Types of options whose values are checked before the portal is asked."""

import json
import re
from typing import Any

import click
from click.shell_completion import CompletionItem

from allocations.domain.allocation_spec import NAME, NAME_MAX
from allocations.domain.phases import Phase


class Json(click.ParamType):
    """A JSON object."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            found = json.loads(value) if isinstance(value, str | bytes) else value
        except (ValueError, RecursionError) as error:
            self.fail(f"That is no JSON: {error}.", param, ctx)
        if not isinstance(found, dict):
            self.fail("That is no JSON object.", param, ctx)
        return found


class JsonFile(click.File):
    """A file with a JSON object, - for standard input."""

    def __init__(self) -> None:
        super().__init__("rb")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        with super().convert(value, param, ctx) as file:
            return JSON.convert(file.read(), param, ctx)


class Names(click.ParamType):
    """Names with commas between them, each one of ``choices`` or, if there is one, with ``prefix``; their text as it
    is.
    """

    name = "names"

    def __init__(self, *choices: str, prefix: str = "") -> None:
        self._choices, self._prefix = choices, prefix

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        names = [name for name in value.split(",") if not (self._prefix and name.strip().startswith(self._prefix))]
        if unknown := [name for name in names if name.strip() not in self._choices]:
            known = [*self._choices, *([f"{self._prefix}KEY"] if self._prefix else [])]
            self.fail(f"{', '.join(unknown)} is none of {', '.join(known)}.", param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",")
        return [CompletionItem(f"{before}{comma}{each}") for each in self._choices if each.startswith(last)]


class TextUpTo(click.ParamType):
    """A text of at most so many characters."""

    name = "text"

    def __init__(self, most: int | None) -> None:
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if self._most is not None and len(value) > self._most:
            self.fail(f"It has {len(value)} characters, and at most {self._most} are allowed.", param, ctx)
        return value


class TextLike(click.ParamType):
    """A text that matches a pattern, which ``words`` say."""

    name = "text"

    def __init__(self, pattern: str, words: str) -> None:
        self._pattern, self._words = pattern, words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not re.fullmatch(self._pattern, value):
            self.fail(self._words, param, ctx)
        return value


JSON, PHASE_NAMES = Json(), Names(*Phase)
ALLOCATION_NAME = TextLike(
    NAME, f"Use lower-case letters, digits and hyphens, at most {NAME_MAX}, no hyphen at either end."
)
KEY = TextLike(r"[!-~]{1,255}", "Use 1 to 255 letters, digits and signs of ASCII, without spaces.")
"""An idempotency key is the value of a header, so that it is visible ASCII (RFC 9110 §5.5)."""
idempotency_key_option = click.option(
    "--idempotency-key", type=KEY, help="The same key again within 48 hours has no second effect."
)
