"""The pages of the docs that are generated say what the code says now."""

import re

import pytest

from docs.generate.__main__ import DOCS, pages
from tests.support import access_matrix


@pytest.fixture(scope="module")
def made():
    return {str(path.relative_to(DOCS)): text for path, text in pages().items()}


@pytest.mark.parametrize(
    "name",
    [
        *("reference/rest.md", "reference/commands.md", "reference/reasons.md", "reference/phases.md"),
        *("evidence/policies.md", "operate/settings.md", "operate/chart.md"),
    ],
)
def test_a_page_is_that_of_the_code(made, name):
    assert (DOCS / name).read_text(encoding="utf-8") == made[name], "make reference"


def test_the_pages_are_complete(made):
    assert "## gpu-portal request\n" in made["reference/commands.md"]
    assert "`quota_exceeded`" in made["reference/reasons.md"]
    assert "gpu-portal-pod-gpus" in made["evidence/policies.md"]
    assert "| `DATABASE_URL` | text | required |" in made["operate/settings.md"]


def test_operations_are_listed_with_who_may_call_them_and_the_scope_of_a_token(made):
    rows = re.findall(
        r"^\| \[(.+?)\]\(portal:api/docs#(.+?)\) \| .+ \| (.+?) \| (.+?) \|$", made["reference/rest.md"], re.M
    )
    assert {
        ("POST /allocations", "/allocations/allocations_create", "members, leads, operators", "`request`"),
        ("PUT, PATCH /teams/{slug}", "/teams/teams_update", "operators", "`admin`"),
        ("GET /teams/{slug}", "/teams/teams_retrieve", "the team, auditors, operators", "`read`"),
        ("GET /me", "/me/me_retrieve", "everyone signed in", "`read`"),
    } <= set(rows)


def test_every_operation_that_was_tried_is_listed(made):
    found = re.findall(r"^\| \[(?:PUT, )?([A-Z]+ /\S+)\]", made["reference/rest.md"], re.MULTILINE)
    tried = {name.replace("/api/v1", "") for name in access_matrix.read() if access_matrix.is_rest(name.split()[1])}
    tried = {re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", name) for name in tried if not name.startswith("PUT ")}
    assert set(found) == tried - {"GET /schema"}


def test_every_setting_says_what_it_means(made):
    assert [line for line in made["operate/settings.md"].splitlines() if line.endswith("|  |")] == []
