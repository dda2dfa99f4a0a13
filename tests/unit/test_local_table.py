"""The process table: rows follow those they need, and no watching client outlives the API server."""

from pathlib import Path

import pytest

from deploy.local.home import PORTS, Home
from deploy.local.processes import GROUPS, Row, table


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path, {name: 20000 + number for number, name in enumerate(PORTS)}, tmp_path / "bin")


@pytest.fixture
def rows(home: Home, monkeypatch: pytest.MonkeyPatch) -> dict[str, Row]:
    monkeypatch.delenv("DATABASE_URL")
    monkeypatch.delenv("REDIS_URL")
    return {row.name: row for row in table(home, tuple(GROUPS))}


def test_names_are_unique(home: Home, rows: dict[str, Row]) -> None:
    assert len(rows) == sum(len(group(home)) for group in GROUPS.values())


def test_what_a_row_needs_stands_before_it(rows: dict[str, Row]) -> None:
    names = list(rows)
    pairs = [(row.name, need) for row in rows.values() for need in row.needs]
    assert [pair for pair in pairs if names.index(pair[1]) > names.index(pair[0])] == []


def test_what_needs_a_server_does_not_outlive_it(rows: dict[str, Row]) -> None:
    pairs = [(row, rows[need]) for row in rows.values() for need in row.needs]
    assert [row.name for row, server in pairs if server.ready and row.stop > server.stop] == []


def test_who_watches_stops_before_the_api_server_and_that_before_etcd(rows: dict[str, Row]) -> None:
    apiserver = rows["kube-apiserver"]
    assert all(row.stop < apiserver.stop for row in rows.values() if "kube-apiserver" in row.needs)
    assert apiserver.stop < rows["etcd"].stop


def test_a_group_stands_alone(home: Home) -> None:
    assert {row.name for row in table(home, ("cluster",))} >= {"etcd", "kube-apiserver", "kueue", "kwok"}
    assert not {row.name for row in table(home, ("cluster",))} & {"postgres", "web"}


def test_a_given_url_replaces_the_store(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://db.example.org/portal")
    monkeypatch.delenv("REDIS_URL")
    assert [row.name for row in table(home, ("stores",))] == ["redis-configuration", "redis"]
    assert home.env()["DATABASE_URL"] == "postgresql://db.example.org/portal"


def test_only_migrations_and_grants_run_as_the_owner_of_the_tables(rows: dict[str, Row], home: Home) -> None:
    as_owner = [row.name for row in rows.values() if home.secret("postgres") in "".join(row.env.values())]
    assert as_owner == ["migrate", "grant"]
    assert rows["web"].env["DATABASE_URL"].startswith("postgresql://gpu_portal_app:")


def test_the_role_that_is_granted_is_that_of_the_given_url(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://app:secret@db.example.org/portal")
    monkeypatch.setenv("DATABASE_OWNER_URL", "postgresql://owner:other@db.example.org/portal")
    given = {row.name: row for row in table(home, ("portal",))}
    assert given["grant"].command[-2:] == ("grant", "app")
    assert given["migrate"].env["DATABASE_URL"] == "postgresql://owner:other@db.example.org/portal"


def test_one_given_role_serves_for_all(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://db.example.org/portal")
    given = {row.name: row for row in table(home, ("portal",))}
    assert "grant" not in given
    assert given["migrate"].env == given["web"].env | {"PGAPPNAME": "gpu-portal-migrate"}


def test_no_password_stands_on_a_command_line(home: Home, rows: dict[str, Row]) -> None:
    secrets = [home.secret(name) for name in ("postgres", "postgres-application", "redis", "django", "metrics")]
    words = " ".join(word for row in rows.values() for word in row.command)
    assert [secret for secret in secrets if secret in words] == []


def test_the_portal_never_sees_the_administrators_kubeconfig(home: Home, rows: dict[str, Row]) -> None:
    for row in GROUPS["portal"](home):
        assert row.env["KUBECONFIG"] == str(home.portal_kubeconfig)


def test_kinds_of_node_are_switched_on_before_the_hardware_is_published(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEET", "l4-mps h200=2")
    rows = {row.name: row for row in table(home, ("cluster",))}
    assert rows["fleet-kinds"].command[-2:] == ("--extra=l4-mps", "--extra=h200=2")
    assert "fleet-kinds" in rows["hardware"].needs


def test_a_history_is_written_after_the_quotas_if_its_length_is_given(
    home: Home, rows: dict[str, Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "history" not in rows
    monkeypatch.setenv("HISTORY", "30d")
    history = {row.name: row for row in table(home, ("portal",))}["history"]
    assert (history.command[-2:], history.needs) == (("simulate_history", "--days=30d"), ("seed-quotas",))


def test_the_portal_knows_the_quota_that_etcd_has(rows: dict[str, Row]) -> None:
    (quota,) = [word for word in rows["etcd"].command if word.startswith("--quota-backend-bytes=")]
    assert quota == f"--quota-backend-bytes={rows['worker'].env['ETCD_QUOTA_BYTES']}"
