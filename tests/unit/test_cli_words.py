"""Errors of the gpu-portal command: they speak of commands and options, not of REST."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from portal.cli.allocations import request
from portal.cli.errors import is_json_requested, words
from portal.cli.hints import in_commands

ROOT = Path(__file__).parents[2]
ADDRESS = re.compile(r"\b(?:GET|POST|PUT|DELETE) /(\S*)")
NOT_OF_COMMANDS = ("departments", "flavors", "invitations", "limits", "me/invitations", "members")
"""Addresses that no command calls, so that no command shows their hints."""


def sentences() -> Iterator[tuple[str, str]]:
    """Yield the texts of the portal that name an address of REST, without docstrings and descriptions of fields."""
    for package in ("portal", "allocations", "quotas"):
        for file in (ROOT / package).rglob("*.py"):
            if "cli" in file.relative_to(ROOT).parts:
                continue
            nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
            described = [node.slice for node in nodes if isinstance(node, ast.Subscript)]
            for node in nodes:
                if isinstance(node, ast.Call | ast.Dict | ast.List | ast.Tuple | ast.Return | ast.IfExp) and (
                    node not in described
                ):
                    yield from ((file.name, text) for text in texts_in(node))


def texts_in(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        inner = child.value if isinstance(child, ast.keyword) else child
        named = child.arg if isinstance(child, ast.keyword) else ""
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and named in ("", "hint", "detail"):
            yield inner.value
        if isinstance(inner, ast.JoinedStr):
            yield "".join(str(part.value) for part in inner.values if isinstance(part, ast.Constant))


def addresses_of_commands(text: str) -> list[str]:
    found = [address.rstrip(".,") for address in ADDRESS.findall(text)]
    return [address for address in found if address not in NOT_OF_COMMANDS]


def test_every_hint_with_an_address_speaks_of_a_command():
    known = {(name, text) for name, text in sentences() if addresses_of_commands(text) and "As GET" not in text}
    assert len(known) > 5
    assert {pair for pair in known if addresses_of_commands(in_commands(pair[1]))} == set()


def test_headers_are_not_spoken_of():
    assert in_commands("Send Authorization: Bearer <token>, or sign in.") == "Run `gpu-portal login`."
    assert "Retry-After" not in in_commands("Wait as long as Retry-After says.")


def test_fields_are_told_as_options_of_the_command():
    problem = {"detail": "ends_at: It is.", "errors": {"ends_at": ["Leave it out, or starts_at."], "claim.x": ["No."]}}
    with click.Context(request):
        assert words(problem) == "--ends-at: Leave it out, or --starts-at.\n--claim: No."


def test_what_is_no_option_stays_as_it_is():
    with click.Context(request):
        assert words({"detail": "evicted_preempted", "errors": {}}) == "evicted_preempted"


@pytest.mark.parametrize(
    ("arguments", "is_asked"),
    [
        (["list", "-o", "json"], True),
        (["list", "-ojson"], True),
        (["list", "-o=json"], True),
        (["list", "--output=json", "--nonsense"], True),
        (["list", "--output", "json"], True),
        (["list", "-o", "yaml"], False),
        (["list", "json"], False),
        (["list", "-o"], False),
    ],
)
def test_json_is_recognized_even_where_the_rest_is_wrong(arguments, is_asked):
    assert is_json_requested(arguments) is is_asked
