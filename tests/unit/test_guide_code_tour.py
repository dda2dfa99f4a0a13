"""The tours of the code go from function to function in ten steps at most, and say the package of each."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from portal.workqueue import tasks, wakeups

ROOT = Path(__file__).parents[2]
CONTRIBUTE = ROOT / "docs" / "contribute"
TOURS = {
    "code-tour": {"allocations", "reconcile", "reconcile_allocation", "reconcile_project"},
    "cost-tour": {"roll_up_due", "costs"},
}
"""Each with what no function calls by name: a URL, a schedule, a message or a registry runs them."""
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
LINKED = r"\(\.\./\.\./([\w/]+\.py)\)[,:]\s+((?:`\w+`(?:\s+and\s+)?)+)"


class Step(NamedTuple):
    """A step of a tour, and the texts of its tour up to there, itself included."""

    tour: str
    text: str
    until: list[str]

    def __str__(self) -> str:
        return f"{self.tour}: {self.text.split('**')[1]}"


def text(tour: str) -> str:
    return (CONTRIBUTE / f"{tour}.md").read_text(encoding="utf-8")


def steps() -> Iterator[Step]:
    for tour in TOURS:
        texts = re.findall(r"^\d+\. .+?(?=^\d+\. |\Z)", text(tour), flags=re.MULTILINE | re.DOTALL)
        yield from (Step(tour, each, texts[: number + 1]) for number, each in enumerate(texts))


STEPS = list(steps())


def functions(step: str) -> list[tuple[str, str]]:
    """Return the files that a step links to, each with a function or class that the step names after it."""
    return [(file, name) for file, names in re.findall(LINKED, step) for name in re.findall(r"`(\w+)`", names)]


def parsed(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


def called_names(file: str) -> set[str]:
    calls = [node.func for node in ast.walk(parsed(file)) if isinstance(node, ast.Call)]
    return {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}


@pytest.mark.parametrize("tour", TOURS)
def test_a_tour_has_ten_steps_at_most(tour: str) -> None:
    assert 0 < len([step for step in STEPS if step.tour == tour]) <= 10


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_a_step_names_functions_or_classes_of_its_files(step: Step) -> None:
    links = re.findall(r"\(\.\./\.\./([\w/]+\.py)\)", step.text)
    assert links
    assert {file for file, _ in functions(step.text)} == set(links)
    for file, name in functions(step.text):
        defined = {n.name for n in parsed(file).body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        assert name in defined


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_the_title_of_a_step_says_the_packages_of_its_files(step: Step) -> None:
    packages = re.findall(r"`([\w/.]+)`", step.text.split("**")[2].split(":")[0])
    assert packages
    assert [file for file, _ in functions(step.text) if not file.startswith(tuple(packages))] == []


@pytest.mark.parametrize("step", [step for step in STEPS if len(step.until) > 1], ids=str)
def test_what_a_step_names_is_called_in_a_file_of_the_tour_up_to_there(step: Step) -> None:
    files = {file for text in step.until for file, _ in functions(text)}
    called = set[str]().union(*map(called_names, files))
    assert {name for _, name in functions(step.text)} - TOURS[step.tour] <= called


def test_the_message_of_the_work_queue_runs_the_task_of_the_next_step() -> None:
    assert tasks.reconcile.name == wakeups.TASK


@pytest.mark.parametrize("tour", TOURS)
def test_the_files_and_packages_that_a_tour_names_exist(tour: str) -> None:
    named = set(re.findall(r"`((?:allocations|frontend|portal|quotas)/[\w/.]+)`", text(tour)))
    assert len(named) >= 10
    assert {name for name in named if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_of_a_page_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = {link for link in links if not re.match(r"[a-z]+:", link)}
    assert {link for link in local if not (page.parent / link).exists()} == set()
