"""The layers that import-linter checks leave out nothing: its ``exhaustive`` is for the inside of one package only."""

import re
import sys
import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]


def test_every_module_of_the_portal_is_in_a_layer():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = {name for layer in contracts[0]["layers"] for name in re.split(r"\s*[|:]\s*", layer)}
    found = {path for path in (ROOT / "portal").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert {f"portal.{path.stem}" for path in found} - {"portal.__init__"} <= layers


def test_the_command_needs_no_more_than_what_is_installed_with_it():
    graph = grimp.build_graph("allocations", "frontend", "portal", "quotas", include_external_packages=True)
    modules = {"portal.cli", *graph.find_descendants("portal.cli")}
    reached = modules.union(*map(graph.find_upstream_modules, modules))
    needed = {name for name in reached if graph.is_module_squashed(name)} - sys.stdlib_module_names
    assert needed == {"click", "jsonpath", "requests", "urllib3", "yaml"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["dependencies"]) == {"click", "python-jsonpath", "requests", "pyyaml", "urllib3"}
