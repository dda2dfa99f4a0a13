"""Shared code of tests is in tests/support, which imports no other folder of tests. Nothing imports a test."""

import ast
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
FILES = [file for folder in ("tests", "bench") for file in sorted((REPOSITORY / folder).rglob("*.py"))]


def imported(file: Path) -> set[str]:
    """Return each module that the file imports, and each name that it imports from one."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
    return found


def test_no_file_imports_a_test():
    modules = {file: ".".join(file.relative_to(REPOSITORY).with_suffix("").parts) for file in FILES}
    tests = {name for name in modules.values() if name.rpartition(".")[2].startswith(("test_", "conftest"))}
    assert tests
    assert not {name: found for file, name in modules.items() if (found := imported(file) & tests)}


def test_shared_code_imports_only_shared_code_of_tests():
    shared = [file for file in FILES if file.is_relative_to(REPOSITORY / "tests" / "support")]
    upward = {
        (file.name, name)
        for file in shared
        for name in imported(file)
        if name.startswith("tests.") and not f"{name}.".startswith(("tests.support.", "tests.services."))
    }
    assert shared
    assert not upward
