"""Permission is checked by functions that change something, or find what may be edited; never by a view."""

import ast
from pathlib import Path

from portal.tenants.access import PERMISSIONS

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


def test_a_view_names_an_action_only_for_what_its_page_offers():
    """By ``access.can``, which refuses nothing."""
    passed = {
        (file.name, node.lineno)
        for file in VIEWS
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Attribute) and node.func.attr == "can")
        for value in [*node.args, *(keyword.value for keyword in node.keywords)]
        if (isinstance(value, ast.Constant) and value.value in PERMISSIONS)
        or (isinstance(value, ast.Name | ast.Attribute) and ast.unparse(value).endswith("ACTION"))
    }
    assert not passed


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
