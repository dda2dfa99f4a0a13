"""The code tour follows a request in ten steps at most, from function to function, and says the package of each."""

import ast
import re
from pathlib import Path

import pytest

from portal.workqueue import tasks, wakeups

ROOT = Path(__file__).parents[2]
TOUR = (ROOT / "docs" / "contribute" / "code-tour.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\d+\. .+?(?=^\d+\. |\Z)", TOUR, flags=re.MULTILINE | re.DOTALL)
TITLES = [step.split("**")[1] for step in STEPS]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
LINKED = r"\(\.\./\.\./([\w/]+\.py)\)[,:]\s+((?:`\w+`(?:\s+and\s+)?)+)"
STARTS = {"allocations", "reconcile", "reconcile_allocation", "reconcile_project"}
"""What no function calls by name: a URL, a message, and the controllers' registry."""


def functions(step: str) -> list[tuple[str, str]]:
    """Return the files that a step links to, each with a function or class that the step names after it."""
    return [(file, name) for file, names in re.findall(LINKED, step) for name in re.findall(r"`(\w+)`", names)]


def parsed(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


def called_names(file: str) -> set[str]:
    calls = [node.func for node in ast.walk(parsed(file)) if isinstance(node, ast.Call)]
    return {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}


def test_it_follows_a_request_in_ten_steps_at_most() -> None:
    assert 0 < len(STEPS) <= 10


@pytest.mark.parametrize("step", STEPS, ids=TITLES)
def test_a_step_names_functions_or_classes_of_its_files(step: str) -> None:
    links = re.findall(r"\(\.\./\.\./([\w/]+\.py)\)", step)
    assert links
    assert {file for file, _ in functions(step)} == set(links)
    for file, name in functions(step):
        defined = {n.name for n in parsed(file).body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        assert name in defined


@pytest.mark.parametrize("step", STEPS, ids=TITLES)
def test_the_title_of_a_step_says_the_packages_of_its_files(step: str) -> None:
    packages = re.findall(r"`([\w/.]+)`", step.split("**")[2].split(":")[0])
    assert packages
    assert [file for file, _ in functions(step) if not file.startswith(tuple(packages))] == []


@pytest.mark.parametrize("number", range(1, len(STEPS)), ids=TITLES[1:])
def test_what_a_step_names_is_called_in_a_file_of_the_tour_up_to_there(number: int) -> None:
    files = {file for step in STEPS[: number + 1] for file, _ in functions(step)}
    called = set[str]().union(*map(called_names, files))
    assert {name for _, name in functions(STEPS[number])} - STARTS <= called


def test_the_message_of_the_work_queue_runs_the_task_of_the_next_step() -> None:
    assert tasks.reconcile.name == wakeups.TASK


def test_the_files_and_packages_that_it_names_exist() -> None:
    named = set(re.findall(r"`((?:allocations|frontend|portal|quotas)/[\w/.]+)`", TOUR))
    assert len(named) > 10
    assert {name for name in named if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_of_a_page_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = {link for link in links if not re.match(r"[a-z]+:", link)}
    assert {link for link in local if not (page.parent / link).exists()} == set()
