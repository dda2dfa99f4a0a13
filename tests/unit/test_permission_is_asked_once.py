"""Permission is checked by functions that change something, or find a row for an action; never by a view."""

import ast
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
VIEWS = [
    file for folder in ("portal/api/views", "frontend/views") for file in sorted((REPOSITORY / folder).glob("*.py"))
]


def test_no_view_requires_a_permission():
    calls = {
        (file.name, node.lineno)
        for file in VIEWS
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "require"
    }
    assert VIEWS
    assert not calls


def test_no_view_passes_an_actors_name_to_what_asks_nothing():
    """Except for tokens, which are always one's own."""
    named = {
        (file.name, keyword.value.lineno)
        for file in VIEWS
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "actor" and file.name != "me.py"
    }
    assert not named
