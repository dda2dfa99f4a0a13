"""What can be refused without the portal is refused before it is asked: every command with every option.

No test here has a network: a command that asks the portal fails otherwise than with wrong usage.
"""

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from portal.cli.main import cli
from portal.cli.option_types import TextLike, TextUpTo
from portal.cli.output_format import NAME, OutputType

FREE = {
    *("--cluster", "--department", "--filter", "--from", "--label", "--member"),
    *("--offering", "--project", "--team", "--timezone", "--token", "--until", "--url", "--window"),
}
"""Texts that only the portal can judge."""
NO_UTF8 = "a\udcff"
"""As Python has the bytes ``a\\xff`` of a command line."""
NO_TEMPLATES = (
    "table",
    "jsonpath={.id",
    "jsonpath={.x[}",
    "jsonpath={range .results[*]}",
    "jsonpath={end}",
    "jsonpath={.a[?@ =~ /(/]}",
)
REQUEST = ("request", "h100/whole", "--project", "p")
CONTRADICTIONS = (
    ("request",),
    ("request", "h100/whole", "--offering", "l40s/whole"),
    (*REQUEST, "--hours", "1", "--ends-at", "2031-01-01T00:00:00Z"),
    (*REQUEST, "--dry-run", "--output", "name"),
    (*REQUEST, "--label", "no pair"),
    ("release",),
    ("release", "a", "b", "--wait"),
    ("release", "a", "--wait", "--dry-run"),
    ("costs", "--daily", "--accumulate", "week"),
    ("costs", "--idle-by", "node"),
    ("costs", "--idle", "hide", "--idle-split", "even"),
    ("forecast", "--window", "month", "--from", "2026-11-01"),
    ("forecast", "--until", "2026-11-01"),
    ("kubeconfig", "train", "--project", "p"),
    ("token", "revoke", "ci"),
)


@pytest.fixture(autouse=True)
def configured(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("GPU_PORTAL_URL", "https://portal.invalid")
    monkeypatch.setenv("GPU_PORTAL_TOKEN", "gpup_x")
    monkeypatch.setenv("GPU_PORTAL_PROJECT", "p")


def leaves(group: click.Group = cli, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, *path, name)
        else:
            yield (*path, name), command


def right(parameter: click.Parameter) -> str:
    return str(next(iter(parameter.type.choices))) if isinstance(parameter.type, click.Choice) else "1"


def wrong(option: click.Option) -> list[str]:
    match option.type:
        case OutputType() as type_:
            return [*NO_TEMPLATES, *([] if NAME in type_.formats else [NAME])]
        case TextUpTo():
            return ["x" * 501]
        case click.Path():
            return ["/no/such/folder/file"]
        case TextLike():
            return ["", "two words", "ключ", "a\nb", "x" * 256]
        case click.STRING:
            return ["", NO_UTF8]
    return ["-1", "no such value", "nan", ""]


def options(command: click.Command) -> list[click.Option]:
    return [each for each in command.params if isinstance(each, click.Option) and not each.is_flag]


def command_lines(path: tuple[str, ...], command: click.Command) -> Iterator[tuple[str, ...]]:
    """Yield the command with each wrong value of each argument and option."""
    given = [right(each) for each in command.params if isinstance(each, click.Argument)]
    for number in range(len(given)):
        for text in ("", NO_UTF8):
            yield (*path, *given[:number], text, *given[number + 1 :])
    given += [
        word
        for each in command.params
        if each.required and isinstance(each, click.Option)
        for word in (each.opts[0], right(each))
    ]
    for option in options(command):
        for value in wrong(option):
            yield (*path, *given, f"{option.opts[-1]}={value}")


def refuse(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, words)
    assert (result.exit_code, result.stdout, "Error: " in result.stderr) == (2, "", True), words


@pytest.mark.parametrize(("path", "command"), [*leaves()], ids=[" ".join(path) for path, _ in leaves()])
def test_a_wrong_value_is_told_before_the_portal_is_asked(path, command):
    for words in command_lines(path, command):
        refuse(words)


@pytest.mark.parametrize("words", CONTRADICTIONS, ids=" ".join)
def test_what_contradicts_itself_is_told_before_the_portal_is_asked(words):
    refuse(words)


def test_every_option_is_checked_or_known_to_be_a_text_that_only_the_portal_can_judge():
    texts = {
        each.opts[0]
        for _, command in leaves()
        for each in command.params
        if isinstance(each, click.Option) and not each.is_flag and each.type is click.STRING
    }
    assert texts == FREE


def test_nobody_loses_the_secret_of_a_token_by_asking_for_its_name():
    assert CliRunner().invoke(cli, ["token", "create", "ci", "-o", "name"]).exit_code == 2


@pytest.mark.parametrize("content", [b"\xff", b"[1]", b"null", b"[" * 100_000, b'"text"'])
def test_a_claim_that_is_no_json_object_is_refused(content, tmp_path):
    (tmp_path / "claim").write_bytes(content)
    result = CliRunner().invoke(cli, [*REQUEST, "--claim", str(tmp_path / "claim")])
    assert (result.exit_code, "no JSON" in result.stderr) == (2, True)
