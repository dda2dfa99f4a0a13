"""The code tour names files and functions that exist, and follows a request in ten steps at most."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOUR = (ROOT / "docs" / "contribute" / "code-tour.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\d+\. .+?(?=^\d+\. |\Z)", TOUR, flags=re.MULTILINE | re.DOTALL)
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def test_it_follows_a_request_in_ten_steps_at_most() -> None:
    assert 0 < len(STEPS) <= 10


@pytest.mark.parametrize("step", STEPS, ids=[step.split("**")[1] for step in STEPS])
def test_a_step_names_a_function_or_class_of_its_file(step: str) -> None:
    [(file, names)] = re.findall(r"\(\.\./\.\./([\w/]+\.py)\), ((?:`\w+`(?: and )?)+)", step)
    module = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    defined = {node.name for node in module.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert set(re.findall(r"\w+", names)) - {"and"} <= defined


def test_the_files_and_packages_that_it_names_exist() -> None:
    named = set(re.findall(r"`((?:allocations|frontend|portal|quotas)/[\w/.]+)`", TOUR))
    assert len(named) > 10
    assert {name for name in named if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_of_a_page_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = {link for link in links if not re.match(r"[a-z]+:", link)}
    assert {link for link in local if not (page.parent / link).exists()} == set()
