"""The pages of the docs that are generated say what the code says now."""

import pytest

from docs.generate.__main__ import DOCS, pages


@pytest.fixture(scope="module")
def made():
    return {str(path.relative_to(DOCS)): text for path, text in pages().items()}


@pytest.mark.parametrize(
    "name",
    [
        *("reference/rest.md", "reference/rest-objects.md", "reference/commands.md", "reference/reasons.md"),
        *("reference/policies.md", "reference/phases.md", "operate/settings.md"),
    ],
)
def test_a_page_is_that_of_the_code(made, name):
    assert (DOCS / name).read_text(encoding="utf-8") == made[name], "make reference"


def test_the_pages_are_complete(made):
    assert "### POST /allocations\n" in made["reference/rest.md"]
    assert "## gpu-portal request\n" in made["reference/commands.md"]
    assert "`quota_exceeded`" in made["reference/reasons.md"]
    assert "gpu-portal-pod-gpus" in made["reference/policies.md"]
    assert "| `DATABASE_URL` | text | required |" in made["operate/settings.md"]


def test_every_setting_says_what_it_means(made):
    assert [line for line in made["operate/settings.md"].splitlines() if line.endswith("|  |")] == []
