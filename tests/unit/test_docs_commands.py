"""What the tasks of the docs tell people to type exists: commands with their options, make targets, REST addresses."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from django.core.management import get_commands
from django.urls import Resolver404, resolve

from portal.api.http import problems
from portal.cli.main import cli as main

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for folder in ("start", "how-to", "operate") for path in (ROOT / "docs" / folder).glob("*.md"))
COMMAND = re.compile(r"(?<![\w/.`-])gpu-portal ([^\n`|#;]*)|`gpu-portal ([^\n`]*)")
MANAGE = re.compile(r"manage\.py (\w+)")
MAKE = re.compile(r"(?:^\s*|`|&& )make ([a-z]+)\b", re.MULTILINE)
OPERATION = re.compile(r"(?:GET|POST|PUT|PATCH|DELETE) (?:/api/v1)?(/(?!v3/)[\w/{}<>.-]*)")  # /v3: etcd's
CALL = re.compile(r"\$(\w+)/api/v1(/[\w/{}<>.-]*)")
PARAMETER = re.compile(r"\{\w+\}|<\w+>")
VALUES = ("1", "6f0c1c1e-6a62-4c1c-9a58-0f6f2a6e6a10")


def found(pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield the name of the page and the last group that matched."""
    for path in PAGES:
        for match in pattern.finditer(path.read_text(encoding="utf-8").replace("\\\n", " ")):
            yield path.name, next(filter(None, reversed(match.groups())), "")


def options_of(words: list[str]) -> tuple[list[str], set[str]]:
    """Return the options among the words of a command, and those that the command has."""
    command: click.Command = main
    rest = list(words)
    while isinstance(command, click.Group) and rest:
        command = command.commands[rest.pop(0)]
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}
    return [word.partition("=")[0] for word in rest if word.startswith("-") and word != "-"], known


def test_each_command_has_the_options_it_is_called_with() -> None:
    wrong, number = [], 0
    for page, line in found(COMMAND):
        words = line.split()
        if not words or words[0] not in main.commands:
            continue
        number += 1
        given, known = options_of(words)
        wrong += [(page, line, option) for option in given if option not in known]
    assert number > 30
    assert not wrong


def test_each_command_of_manage_py_and_each_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z]+(?: [a-z]+)*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    makes = {word for line in targets for word in line.split()}
    assert [(page, name) for page, name in found(MANAGE) if name not in get_commands()] == []
    assert [(page, name) for page, name in found(MAKE) if name not in makes] == []
    assert {name for _, name in found(MANAGE)} >= {"preflight", "migrate", "grant", "collectstatic", "createsuperuser"}
    assert {name for _, name in found(MAKE)} >= {"demo", "docs"}


@pytest.mark.parametrize("pattern", [OPERATION, CALL], ids=["operations", "calls"])
def test_each_rest_address_exists(pattern: re.Pattern[str]) -> None:
    addresses = [(page, address.rstrip(".")) for page, address in found(pattern)]
    assert len(addresses) > 3
    assert [(page, address) for page, address in addresses if not is_route(address)] == []


def test_calls_name_the_portal_as_its_commands_do() -> None:
    names = [(path.name, match[1]) for path in PAGES for match in CALL.finditer(path.read_text(encoding="utf-8"))]
    assert {name for _, name in names} == {"GPU_PORTAL_URL"}, names


def is_route(address: str) -> bool:
    for value in VALUES:
        for prefix in ("/api/v1", ""):
            try:
                match = resolve(prefix + PARAMETER.sub(value, address))
            except Resolver404:
                continue
            if match.func is not problems.unknown_route:
                return True
    return False
