"""Templates of kubectl's, by which an answer is printed: text with expressions in braces.

An expression is a JSONPath (RFC 9535, by python-jsonpath; the leading `$` may be left out, and `\\.` is a dot within a
key, as kubectl has it), a quoted text such as `{"\\n"}`, or `{range PATH}` … `{end}`. A template without braces is one
path.
"""

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jsonpath

QUOTED = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""")
TOKEN = re.compile(r"""\{((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^{}"'])*)\}|([^{]+)""")
ESCAPED_KEY = re.compile(r"\.((?:[^.\[\]\\]|\\.)*\\\.(?:[^.\[\]\\]|\\.)*)")
START, END = "range ", "end"


@dataclass(frozen=True)
class Template:
    """A template that was read: texts, paths, and ranges, which are a path and the template that is repeated."""

    parts: Sequence[Any] = ()

    def render(self, answer: Any) -> str:
        """Return the template filled from the answer; a path that finds nothing is empty."""
        return "".join(_rendered(part, answer) for part in self.parts)


def _rendered(part: Any, item: Any) -> str:
    match part:
        case str():
            return part
        case (path, Template() as body):
            return "".join(body.render(each) for each in path.findall(item))
    return " ".join(map(_printed, part.findall(item)))


def parse(template: str) -> Template:
    """Return the template. Raises ValueError if it cannot be read."""
    found, rest = _parts(_tokens(template if "{" in template else f"{{{template}}}"))
    if rest:
        raise ValueError("{end} without {range}")
    return found


def _tokens(template: str) -> list[tuple[str, str]]:
    """Return (expression, text) pairs, one of them empty."""
    tokens, at = [], 0
    while at < len(template):
        found = TOKEN.match(template, at)
        if found is None:
            raise ValueError(f"the brace at {at + 1} is not closed")
        tokens.append((found[1].strip() if found[1] is not None else "", found[2] or ""))
        at = found.end()
    return tokens


def _parts(tokens: list[tuple[str, str]]) -> tuple[Template, list[tuple[str, str]]]:
    """Return the template up to the next `{end}`, and the tokens from there on."""
    parts: list[Any] = []
    while tokens and tokens[0][0] != END:
        (expression, text), *tokens = tokens
        if expression.startswith(START):
            body, tokens = _parts(tokens)
            if not tokens:
                raise ValueError("{range} without {end}")
            parts.append((_path(expression.removeprefix(START)), body))
            tokens = tokens[1:]
        elif expression[:1] in ("'", '"'):
            parts.append(_text(expression))
        else:
            parts.append(text or _path(expression))
    return Template(parts), tokens


def _text(literal: str) -> str:
    try:
        if QUOTED.fullmatch(literal):
            return str(ast.literal_eval(literal))
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"{literal} is no text") from error
    raise ValueError(f"{literal} is no text")


def _path(text: str) -> Any:
    path = ESCAPED_KEY.sub(lambda key: f"[{json.dumps(key[1].replace(chr(92) + '.', '.'))}]", text.strip())
    path = f"${path[1:]}" if path.startswith(("@", "$")) else f"${path}" if path.startswith((".", "[")) else f"$.{path}"
    try:
        return jsonpath.compile("$" if path == "$." else path)
    except (jsonpath.JSONPathError, re.error, ArithmeticError, RecursionError) as error:
        raise ValueError(f"{path}: {str(error).splitlines()[0]}") from error


def _printed(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
