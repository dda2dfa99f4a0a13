import pytest
from django.core.exceptions import ImproperlyConfigured

from portal import database, env


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    monkeypatch.delenv("THING", raising=False)
    monkeypatch.delenv("THING_FILE", raising=False)


def test_an_unset_or_empty_variable_gives_the_default(monkeypatch):
    assert env.integer("THING", 7) == 7
    monkeypatch.setenv("THING", " ")
    assert env.integer("THING", 7) == 7


def test_a_secret_is_read_from_the_file_that_is_named(monkeypatch, tmp_path):
    (tmp_path / "secret").write_text("hush\n")
    monkeypatch.setenv("THING_FILE", str(tmp_path / "secret"))
    assert env.required("THING") == "hush"


def test_the_variable_itself_wins_over_the_file(monkeypatch, tmp_path):
    monkeypatch.setenv("THING_FILE", str(tmp_path / "absent"))
    monkeypatch.setenv("THING", "plain")
    assert env.text("THING") == "plain"


def test_a_required_variable_is_asked_for_by_name():
    with pytest.raises(ImproperlyConfigured, match="THING is not set"):
        env.required("THING")


@pytest.mark.parametrize(("raw", "value"), [("1", True), ("Yes", True), ("off", False), ("0", False)])
def test_booleans_are_words_or_digits(monkeypatch, raw, value):
    monkeypatch.setenv("THING", raw)
    assert env.boolean("THING", not value) is value


@pytest.mark.parametrize("read", [env.integer, env.boolean])
def test_what_cannot_be_read_is_an_error_that_names_the_variable(monkeypatch, read):
    monkeypatch.setenv("THING", "perhaps")
    with pytest.raises(ImproperlyConfigured, match="THING"):
        read("THING", 1)


def test_words_are_split_at_commas(monkeypatch):
    monkeypatch.setenv("THING", "a, b,,c")
    assert env.strings("THING", []) == ["a", "b", "c"]


def test_a_database_url_is_read_whole():
    entry = database.from_url("postgresql://me:p%40ss@db:5433/portal?sslmode=verify-full")
    assert (entry["HOST"], entry["PORT"], entry["USER"]) == ("db", "5433", "me")
    assert (entry["PASSWORD"], entry["NAME"]) == ("p@ss", "portal")
    assert entry["OPTIONS"]["sslmode"] == "verify-full"


def test_a_socket_folder_may_stand_in_the_query():
    assert database.from_url("postgresql://postgres:@/postgres?host=/run/pg")["HOST"] == "/run/pg"


def test_another_database_is_refused():
    with pytest.raises(ImproperlyConfigured, match="PostgreSQL only"):
        database.from_url("sqlite:///portal.db")
