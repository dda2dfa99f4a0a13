"""What calls itself pure in its docstring depends on nothing but its arguments: no Django, no cluster, no clock.

A package that says ``Pure.`` says so of all its modules.
"""

import ast
from functools import cache
from pathlib import Path

import grimp
import pytest

PACKAGES = ("allocations", "frontend", "portal", "quotas")
IMPURE = {"celery", "django", "kubernetes", "portal.core.clock", "psycopg", "random", "redis", "rest_framework", "time"}
ROOT = Path(__file__).parents[2]


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, include_external_packages=True)


def pure_modules() -> list[str]:
    """Return the modules whose docstring, or whose package's, says that they are."""
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    named = {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}
    claims = {name for name, file in named.items() if "Pure." in _docstring(file)}
    return [name for name in named if any(name == claim or name.startswith(f"{claim}.") for claim in claims)]


def _docstring(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""


def test_each_layer_of_allocations_has_pure_modules():
    """Else the search would find too little without anybody noticing."""
    found = {".".join(name.split(".")[:2]) for name in pure_modules()}
    assert found > {f"allocations.{layer}" for layer in ("domain", "cluster", "claims", "capacity", "reconcile")}
    assert found > {"quotas.catalog", "quotas.costs", "quotas.limits"}


def test_what_reads_rows_is_found_impure():
    assert graph().find_upstream_modules("allocations.models") & IMPURE


@pytest.mark.parametrize("module", pure_modules())
def test_a_pure_module_depends_on_nothing_impure(module: str):
    reached = graph().find_upstream_modules(module) & IMPURE
    assert not {name: graph().find_shortest_chain(module, name) for name in reached}
