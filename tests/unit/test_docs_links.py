"""What Sphinx does not read: links of the README, and pages of the docs that code names."""

import re
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGE = re.compile(r"docs/(?:adr|appendix|concepts|contribute|evidence|how-to|operate|reference|start)/[\w-]+\.md")


def test_every_link_of_the_readme_leads_somewhere():
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if ":" not in link]
    assert links
    assert [link for link in links if not (REPOSITORY / link).exists()] == []


def test_the_readme_fits_two_screens():
    assert len((REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()) <= 80


def test_every_page_that_code_names_is_there():
    files = subprocess.run(
        ["git", "ls-files", "*.py", "*.yaml", "Makefile"], cwd=REPOSITORY, check=True, capture_output=True, text=True
    ).stdout.split()
    named = {
        page
        for file in files
        for page in PAGE.findall((REPOSITORY / file).read_text(encoding="utf-8", errors="ignore"))
    }
    assert named
    assert sorted(page for page in named if not (REPOSITORY / page).exists()) == []


def test_the_entry_page_of_security_evidence_leads_to_each_of_its_pages():
    folder = REPOSITORY / "docs" / "evidence"
    linked = re.findall(r"\]\(([\w-]+\.md)\)", (folder / "index.md").read_text(encoding="utf-8"))
    assert sorted(linked) == sorted(page.name for page in folder.glob("*.md") if page.name != "index.md")
