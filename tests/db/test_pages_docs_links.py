"""Each page links to the page of the docs that explains it, and that page exists under this heading."""

import re
from pathlib import Path

import pytest

from frontend import docs_pages, menu
from frontend.urls import urlpatterns
from portal.tenants.models import PlatformRole, User
from tests.support.pages import requested, text

DOCS = Path(__file__).parents[2] / "docs"
WITHOUT = {"docs", "banners", "palette", "theme"}
"""Routes that are no pages of the portal."""


def test_every_page_has_one():
    named = {pattern.name for pattern in urlpatterns if pattern.name}
    assert named - WITHOUT == set(docs_pages.of_routes())


@pytest.mark.parametrize("name", sorted({*docs_pages.of_routes().values(), *docs_pages.HOMES.values()}))
def test_each_exists_and_has_a_title(name):
    assert (DOCS / f"{name}.md").read_text(encoding="utf-8").startswith(f"# {docs_pages.title(name)}\n")


def test_every_link_of_a_template_to_the_docs_leads_to_a_page():
    found = set()
    for template in (DOCS.parent / "frontend" / "templates").rglob("*.html"):
        found |= set(re.findall(r"\{% url 'docs' %\}([\w/-]+)\.html", template.read_text(encoding="utf-8")))
    assert found
    assert sorted(name for name in found if not (DOCS / f"{name}.md").is_file()) == []


def test_read_costs_names_every_page_of_usage_and_costs():
    words = (DOCS / "how-to" / "costs.md").read_text(encoding="utf-8")
    found = menu.items(User(platform_role=PlatformRole.OPERATOR)).values()
    assert [item.word for item in found if item.section != menu.ADMIN and f"| [{item.word}" not in words] == []


@pytest.mark.django_db
def test_pages_show_it(fleet, member, project, browser):
    row = requested(member, project)
    assert '<a href="/docs/start/engineer.html">Docs: Your first GPU</a>' in text(browser.get("/"))
    assert '<a href="/docs/how-to/connect.html">Docs: Use your GPUs in pods</a>' in text(
        browser.get(f"/allocations/{row.pk}")
    )
