"""The index of decisions has a row for each, in their order, with the later decisions that change it."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "adr"
FILES = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("0*.md"))}
ROW = re.compile(r"^\| \[(\d+)\]\((.+?)\) \| (.+?) \| accepted(?:, changed by (.+))? \|$", re.MULTILINE)
ROWS = ROW.findall((FOLDER / "index.md").read_text(encoding="utf-8"))
CHANGED = re.compile(r"This (?:changes|supersedes)\b[^.]*?\[ADR \d+\]\((.+?)\)")


def test_each_decision_has_a_row_under_its_number():
    assert [(int(number), name) for number, name, *_ in ROWS] == [(int(name[:4]), name) for name in FILES]


def test_each_is_told_in_ten_words_at_most():
    assert [decision for _, _, decision, _ in ROWS if len(decision.split()) > 10] == []


def test_the_status_of_a_decision_names_those_that_change_it():
    told = {(name, later) for _, name, _, status in ROWS for later in re.findall(r"\]\((.+?)\)", status)}
    changes = {(name, later) for later, text in FILES.items() for name in CHANGED.findall(text)}
    assert changes
    assert told == changes
