"""Renders an answer by a template of kubectl's: text with expressions in braces.

An expression is a JSONPath (RFC 9535, by python-jsonpath; the leading `$` may be left out), a quoted text such as
`{"\\n"}`, or `{range PATH}` … `{end}`. A template without braces is one path.
"""

import ast
import json
import re
from typing import Any

import click
import jsonpath

TOKEN = re.compile(r"""\{((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^{}"'])*)\}|([^{]+)""")
START, END = "range ", "end"


def render(template: str, answer: Any) -> str:
    """Return the template filled from the answer; a path that finds nothing is empty. Raises click's BadParameter."""
    tokens = _tokens(template if "{" in template else f"{{{template}}}")
    text, rest = _fill(tokens, answer)
    if rest:
        raise _wrong("{end} without {range}")
    return text


def _tokens(template: str) -> list[tuple[str, str]]:
    """Return (expression, text) pairs, one of them empty."""
    tokens, at = [], 0
    while at < len(template):
        found = TOKEN.match(template, at)
        if found is None:
            raise _wrong(f"the brace at {at + 1} is not closed")
        tokens.append((found[1].strip() if found[1] is not None else "", found[2] or ""))
        at = found.end()
    return tokens


def _fill(tokens: list[tuple[str, str]], item: Any) -> tuple[str, list[tuple[str, str]]]:
    """Return the text up to the next `{end}`, and the tokens from there on."""
    parts: list[str] = []
    while tokens:
        (expression, text), rest = tokens[0], tokens[1:]
        if expression == END:
            break
        if expression.startswith(START):
            body, rest = rest, _after_end(rest)
            parts += [_fill(body, each)[0] for each in _find(expression.removeprefix(START), item)]
        elif expression[:1] in ("'", '"'):
            parts.append(str(ast.literal_eval(expression)))
        else:
            parts.append(text or " ".join(map(_printed, _find(expression, item))))
        tokens = rest
    return "".join(parts), tokens


def _after_end(tokens: list[tuple[str, str]]) -> list[tuple[str, str]]:
    depth = 1
    for index, (expression, _) in enumerate(tokens):
        depth += expression.startswith(START) - (expression == END)
        if depth == 0:
            return tokens[index + 1 :]
    raise _wrong("{range} without {end}")


def _find(path: str, item: Any) -> list[Any]:
    path = path.strip()
    path = f"${path[1:]}" if path.startswith(("@", "$")) else f"${path}" if path.startswith((".", "[")) else f"$.{path}"
    try:
        return jsonpath.findall("$" if path == "$." else path, item)
    except jsonpath.JSONPathError as error:
        raise _wrong(f"{path}: {str(error).splitlines()[0]}") from error


def _printed(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _wrong(why: str) -> click.BadParameter:
    return click.BadParameter(f"That is no jsonpath template: {why}.", param_hint="--output")
