"""Every role requests every route, and gets the answer of the table in the repository, which `make matrix` writes."""

import os

import pytest
from django.db import transaction

from tests.support import access_matrix
from tests.support.access_matrix import ALLOWED, SIGN_IN
from tests.support.world import World, world

pytestmark = pytest.mark.django_db
DECIDED = {ALLOWED, SIGN_IN, 401, 403, 404, 409, 503}
CHOICES = {"POST /limits/set"}
"""Forms whose choices depend on the person, and which answer 400 to any other."""
OPEN = {
    *("GET /livez", "GET /readyz", "GET /login", "POST /login", "POST /theme"),
    *("GET /api/docs", "GET /api/v1/schema", "GET /favicon.ico"),
}


class _Undo(Exception):
    pass


def answer(there: World, role: str, method: str, pattern: str) -> str | int:
    """Return the role's answer, with its effect rolled back."""
    ask = there.rest if access_matrix.is_rest(pattern) else there.page
    try:
        with transaction.atomic():
            response = ask(role, method, pattern)
            list(getattr(response, "streaming_content", ()))
            raise _Undo
    except _Undo:
        pass
    if response.status_code in (301, 302):
        return SIGN_IN if "/login" in response["Location"].partition("?")[0] else ALLOWED
    return ALLOWED if 200 <= response.status_code < 300 else int(response.status_code)


def answers(there: World) -> access_matrix.Table:
    table: access_matrix.Table = {}
    for pattern in access_matrix.routes():
        is_rest = access_matrix.is_rest(pattern)
        roles = [role for role in access_matrix.ROLES if is_rest or not role.endswith("(reading)")]
        for method in there.methods(pattern):
            table[f"{method} {pattern}"] = {role: answer(there, role, method, pattern) for role in roles}
    return table


@pytest.fixture
def found(team, other_team, project, settings, tmp_path):
    (tmp_path / "index.html").touch()
    settings.DOCS_ROOT = tmp_path
    settings.API_REQUESTS_PER_MINUTE = settings.LOGINS_PER_MINUTE = 100_000
    settings.WRONG_TOKENS_PER_MINUTE = settings.LOGIN_FAILURES_PER_MINUTE = 100_000
    settings.METRICS_TOKEN = "no role's"
    table = answers(world(team, other_team, project))
    if os.environ.get("WRITE_MATRIX"):
        access_matrix.write(table)
    return table


def test_every_route_answers_every_role_as_the_table_says(found):
    written = access_matrix.read()
    new = sorted(set(found) - set(written))
    assert not new, f"not in the table: {new}. Run `make matrix` and look at what it adds."
    assert found == written


def test_permission_decides_every_answer():
    found = {name: set(row.values()) - DECIDED for name, row in access_matrix.read().items()}
    undecided = {name for name, left in found.items() if left - ({400} if name in CHOICES else set())}
    assert undecided == set(), "give these a body in tests/support/request_bodies.py that is right for who is allowed"


def test_of_another_teams_things_nobody_hears_even_no():
    owned = ("<str:id_>", "<uuid:id_>", "<uuid:uid>", "<int:id_>", "<str:slug>", "<str:team>")
    rows = {name: row for name, row in access_matrix.read().items() if any(part in name for part in owned)}
    rows = {name: row for name, row in rows.items() if "/departments/" not in name}  # which both teams belong to
    assert rows
    assert {name for name, row in rows.items() if {row["other lead"], row["no team"]} != {404}} == set()


def test_who_is_not_signed_in_gets_probes_the_way_in_and_the_contract_alone():
    rows = access_matrix.read()
    assert {name for name, row in rows.items() if row["anonymous"] == ALLOWED} == OPEN
    assert {row["anonymous"] for name, row in rows.items() if " /api/v1/" in name and name not in OPEN} == {401}


def test_a_token_that_only_reads_changes_nothing():
    rows = access_matrix.read()
    writes = {name for name in rows if " /api/v1/" in name and not name.startswith("GET ")}
    assert {
        name for name in writes if {rows[name]["lead (reading)"], rows[name]["operator (reading)"]} != {403}
    } == set()
