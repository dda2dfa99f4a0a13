"""How the gpu-portal command asks the portal: where its token goes, what it waits for, and what it says meanwhile. The
portal is a server with written answers; no database.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from portal.cli import client, config, waiting
from portal.cli.config import Config
from portal.cli.errors import CommandError
from portal.cli.main import cli
from tests.support.scripted_server import EMPTY_LIST, answer, serving

NOTHING = answer("200 OK", EMPTY_LIST)
COMMAND = [sys.executable, "-m", "portal.cli.main"]


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    for name in ("GPU_PORTAL_URL", "GPU_PORTAL_TOKEN", "GPU_PORTAL_PROJECT", "NETRC", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(client, "FIRST_PAUSE_S", 0.01)
    return tmp_path


@pytest.fixture
def at(monkeypatch):
    """Return a function that runs a command with a token, for the portal at an address."""

    def run(url: str, *words: str) -> Result:
        monkeypatch.setenv("GPU_PORTAL_URL", url)
        monkeypatch.setenv("GPU_PORTAL_TOKEN", "gpup_x")
        return CliRunner().invoke(cli, words, catch_exceptions=False)

    return run


def test_a_password_in_netrc_is_not_sent(at, monkeypatch, home):
    (home / "netrc").write_text("default login jane password secret\n")
    monkeypatch.setenv("NETRC", str(home / "netrc"))
    with serving(NOTHING) as asked:
        assert at(asked.url, "list").exit_code == 0
    assert "Authorization: Bearer gpup_x" in asked.requests[0]
    assert "Basic" not in asked.requests[0]


def test_a_stored_token_goes_only_to_the_host_it_was_stored_for(monkeypatch):
    config.save(Config("https://portal.example.com", "gpup_stored"))
    assert config.load().token == "gpup_stored"
    for other in ("https://evil.example.com", "http://portal.example.com", "https://portal.example.com:8443"):
        monkeypatch.setenv("GPU_PORTAL_URL", other)
        with pytest.raises(CommandError, match=r"The stored token is of https://portal.example.com"):
            config.load()
    monkeypatch.setenv("GPU_PORTAL_URL", "https://PORTAL.example.com/api/v1/")
    assert config.load() == Config("https://PORTAL.example.com", "gpup_stored")
    monkeypatch.setenv("GPU_PORTAL_URL", "https://portal.example.com:443")
    assert config.load().token == "gpup_stored"


def test_a_host_is_read_as_it_is_when_a_request_is_sent(monkeypatch):
    config.save(Config("http://portal.example.com", "gpup_stored"))
    monkeypatch.setenv("GPU_PORTAL_URL", "http://evil.example.com\\@portal.example.com")
    with pytest.raises(CommandError):
        config.load()


def test_a_token_is_sent_nowhere_that_the_portal_leads_to(at):
    with serving(answer("302 Found", Location="http://127.0.0.1:1/")) as asked:
        result = at(asked.url, "list")
    assert result.exit_code == 1
    assert result.stderr == f"Error: {asked.url} leads to http://127.0.0.1:1/. Use that address.\n"


def test_the_next_page_is_asked_of_the_configured_address(at):
    first = answer("200 OK", json.dumps({"results": [], "next": "http://other.example/api/v1/allocations?cursor=2"}))
    with serving(first, NOTHING) as asked:
        assert at(asked.url, "list").exit_code == 0
    assert asked.requests[1].startswith("GET /api/v1/allocations?cursor=2 ")


def test_a_line_break_after_a_token_does_not_matter(monkeypatch):
    monkeypatch.setenv("GPU_PORTAL_TOKEN", "gpup_x\n")
    monkeypatch.setenv("GPU_PORTAL_URL", "https://portal.example.com")
    assert config.load().token == "gpup_x"


def test_an_error_without_a_word_is_told_with_its_status_and_may_be_tried_again(at):
    with serving(answer("500 Internal Server Error")) as asked:
        result = at(asked.url, "list", "-o", "json")
    assert result.exit_code == 5
    found = json.loads(result.stderr)
    assert found["reason"] == "no_answer"
    assert found["detail"] == f"{asked.url} answered with HTTP status 500, and did not say why."


def test_a_portal_that_stays_busy_is_no_refusal(at):
    busy = answer("503 Service Unavailable", '{"detail": "Busy.", "reason": "busy"}', Retry_After="0")
    with serving(*[busy] * client.TRIES) as asked:
        assert at(asked.url, "list").exit_code == 5


def test_the_longest_wait_for_an_answer_can_be_set(at):
    begin = time.monotonic()
    with serving(b"") as asked:
        result = at(asked.url, "list", "--request-timeout", "0.5s")
        assert time.monotonic() - begin < 10
    assert (result.exit_code, "no answer within 0.5 s" in result.stderr) == (5, True)


def test_a_pause_that_the_portal_asks_for_is_told(at):
    with serving(answer("429 Too Many Requests", "{}", Retry_After="3"), NOTHING) as asked:
        result = at(asked.url, "list")
    assert result.stderr == "The portal asks to wait 3 s; trying again then.\n"


def test_a_wait_says_what_changes_and_nothing_twice(at, monkeypatch):
    monkeypatch.setattr(waiting, "LOOK_EVERY_S", 0.01)
    id_ = "0192f0c1-0000-7000-8000-000000000000"
    places = [("queued", 2), ("queued", 2), ("queued", 1), ("active", 0)]
    rows = [
        {
            **{"id": id_, "name": "train", "phase": phase, "message": f"Waits\x07 for {place}." if place else ""},
            **{"queue": {"position": place, "of": 5} if place else None, "outcome": None},
        }
        for phase, place in places
    ]
    with serving(*(answer("200 OK", json.dumps(row)) for row in rows)) as asked:
        result = at(asked.url, "wait", id_, "-o", "name")
    assert (result.exit_code, result.stdout) == (0, f"allocation/{id_}\n")
    assert result.stderr.splitlines() == [
        f"train ({id_}) is queued, 2 of 5: Waits\\x07 for 2.",
        f"train ({id_}) is queued, 1 of 5: Waits\\x07 for 1.",
        f"train ({id_}) is active",
    ]


def test_a_wait_goes_on_while_the_portal_is_away(at, monkeypatch):
    monkeypatch.setattr(waiting, "LOOK_EVERY_S", 0.01)
    id_ = "0192f0c1-0000-7000-8000-000000000000"
    row = {"id": id_, "name": "train", "message": "", "queue": None, "outcome": None}
    first, last = (answer("200 OK", json.dumps({**row, "phase": phase})) for phase in ("queued", "active"))
    away = answer("502 Bad Gateway", "<html>", Retry_After="0")
    with serving(first, *[away] * client.TRIES, last) as asked:
        result = at(asked.url, "wait", id_, "-o", "name")
    assert (result.exit_code, result.stdout) == (0, f"allocation/{id_}\n")
    told = f"{asked.url} answered with HTTP status 502 and no JSON object, as no portal does. Trying again."
    assert result.stderr.splitlines() == [f"train ({id_}) is queued", told, f"train ({id_}) is active"]


def test_a_wait_that_is_over_names_the_allocation_for_scripts(at):
    row = {"id": ID, "name": "train", "message": "", "queue": None, "outcome": None, "phase": "queued", "held_at": None}
    with serving(answer("200 OK", json.dumps(row))) as asked:
        result = at(asked.url, "wait", ID, "--timeout", "0", "-o", "json")
    found = json.loads(result.stderr)
    assert (result.exit_code, found["reason"], found["allocation"]) == (4, "timeout", ID)


def test_a_request_without_an_answer_can_be_sent_again_with_its_key(at):
    with serving(*[answer("502 Bad Gateway", Retry_After="0")] * client.TRIES) as asked:
        result = at(asked.url, "request", "h100/whole", "--project", "p")
    keys = {found for sent in asked.requests for found in re.findall("Idempotency-Key: (.*)\r", sent)}
    assert (result.exit_code, len(keys)) == (5, 1)
    assert f"It may have arrived. With --idempotency-key {keys.pop()}, the same command" in result.stderr


def test_a_name_with_a_comma_is_not_one_of_several(at):
    row = {"id": "0192f0c1-0000-7000-8000-000000000000", "name": "a", "project": "p", "phase": "active"}
    with serving(answer("200 OK", json.dumps({"results": [row], "next": None}))) as asked:
        result = at(asked.url, "extend", "a,b", "--hours", "1")
    assert (result.exit_code, "There is no allocation a,b" in result.stderr) == (1, True)


OTHERS = ("{}", "[]", "null", '"text"', "3", "<html>", "", "[" * 100_000, '{"results": [{}], "next": null}')
"""What other servers answer, and portals of other versions."""
ID = "0192f0c1-0000-7000-8000-000000000000"
COMMANDS = (
    *(("whoami",), ("offerings",), ("request", "h100/whole", "--project", "p"), ("list",), ("show", "train")),
    *(("wait", ID), ("events", ID), ("extend", ID, "--hours", "1"), ("release", ID), ("release", "a", "b")),
    *(("retry", ID), ("open", "train"), ("queue", "vision"), ("jobs",), ("jobs", "train"), ("costs",), ("forecast",)),
    *(("kubeconfig", ID), ("credential",), ("token", "list"), ("token", "create", "ci"), ("release", "train")),
)


@pytest.mark.parametrize("body", OTHERS, ids=lambda body: body[:20])
def test_what_is_no_answer_of_a_portal_is_told_in_a_sentence(at, body, monkeypatch, home):
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    for words in COMMANDS:
        with serving(answer("200 OK", body)) as asked:
            result = at(asked.url, *words)
        assert result.exit_code == 1, words
        assert result.stderr.startswith("Error: "), words


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("GPU_PORTAL_TOKEN", "gpup_“x”", "The configured token has characters that none has."),
        ("GPU_PORTAL_TOKEN", "gpup_x\nexport A=b", "The configured token has characters that none has."),
        ("GPU_PORTAL_PROJECT", "a\udcff", "The configured project has characters that none has."),
        ("GPU_PORTAL_URL", "http://a..b", "http://a..b is not the URL of a portal."),
        ("GPU_PORTAL_URL", "http://[::1", "http://[::1 is not the URL of a portal."),
    ],
)
def test_a_configuration_that_cannot_be_used_is_told_in_a_sentence(at, monkeypatch, variable, value, words):
    for name, usual in (("GPU_PORTAL_TOKEN", "gpup_x"), ("GPU_PORTAL_URL", "http://127.0.0.1:1")):
        monkeypatch.setenv(name, usual)
    monkeypatch.setenv(variable, value)
    result = CliRunner().invoke(cli, ["list"], catch_exceptions=False)
    assert (result.exit_code, result.stderr.startswith(f"Error: {words}")) == (1, True)


def test_a_stored_configuration_that_is_no_text_is_told_in_a_sentence(home):
    (home / "gpu-portal").mkdir()
    config.path().write_bytes(b"\xff")
    with pytest.raises(CommandError, match=r"config.toml cannot be read"):
        config.load()


def test_a_stored_configuration_that_is_no_file_is_told_in_a_sentence(home):
    config.path().mkdir(parents=True)
    with pytest.raises(CommandError, match=r"config.toml cannot be read .*Run `gpu-portal login` again"):
        config.load()


def test_who_has_no_home_folder_can_use_the_environment_and_is_told_where_to_store(monkeypatch):
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as of a user whom the system does not know
    for name, value in (("URL", "http://p"), ("TOKEN", "x"), ("PROJECT", "train")):
        monkeypatch.setenv(f"GPU_PORTAL_{name}", value)
    assert config.load().project == "train"
    with pytest.raises(CommandError, match=r"You have no home folder\. Set XDG_CONFIG_HOME to a folder"):
        config.save(config.load())


def test_eighty_waits_in_which_nothing_changes_leave_a_person_requests():
    looks, passed, pause = 0, 0.0, waiting.LOOK_EVERY_S
    while passed < 600:
        looks, passed, pause = looks + 1, passed + pause, waiting.longer(pause)
    assert looks / 10 <= 7, "in a minute, of 600"


def test_certificates_that_are_not_there_are_told_in_a_sentence(at, monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nonexistent")
    result = at("https://127.0.0.1:1", "list")
    assert result.exit_code == 1
    assert "/nonexistent" in result.stderr


def test_a_configuration_that_cannot_be_written_is_told_in_a_sentence(monkeypatch, home):
    (home / "file").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "file"))
    with pytest.raises(CommandError, match="cannot be written: Not a directory"):
        config.save(Config("https://portal.example.com", "x"))


def as_process(url: str, *words: str, **options) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "GPU_PORTAL_URL": url, "GPU_PORTAL_TOKEN": "x", **options.pop("env", {})}
    return subprocess.run([*COMMAND, *words], env=environment, stderr=subprocess.PIPE, **options)


def test_an_output_that_is_full_is_told_in_a_sentence():
    with serving(NOTHING) as asked, Path("/dev/full").open("wb") as full:
        done = as_process(asked.url, "list", stdout=full)
    assert (done.returncode, done.stderr) == (1, b"Error: The output cannot be written: No space left on device.\n")


def test_an_output_that_is_closed_is_no_error():
    with serving(NOTHING) as asked:
        done = as_process(asked.url, "list", preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_output_without_the_character_of_a_bar_gets_another_one():
    row = {
        **{"name": "vision", "total": "2", "currency": "EUR", "unpriced_gpu_hours": "0", "idle_cost": "0"},
        **{"gpu_hours": "1", "cost": "2", "change": None},
    }
    window = {"start": "2026-11-01T00:00:00Z", "end": "2026-11-08T00:00:00Z"}
    sums = {"total": "2", "currency": "EUR", "gpu_hours": "1", "unpriced_gpu_hours": "0", "previous_window": None}
    with serving(answer("200 OK", json.dumps({"results": [row], "next": None, "window": window, **sums}))) as asked:
        done = as_process(asked.url, "costs", stdout=subprocess.PIPE, env={"PYTHONIOENCODING": "cp1252"})
    assert (done.returncode, done.stderr, b"####" in done.stdout) == (0, b"", True)


def test_an_interrupt_while_the_command_is_loaded_ends_it_without_a_traceback(tmp_path):
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    start = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import portal.cli.main"
    done = subprocess.run([sys.executable, "-c", start], stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (130, b"")
