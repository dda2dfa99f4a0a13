"""Code asks a backend's capabilities: nothing else compares the path of a flavor."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from allocations.cluster.backends import registry
from allocations.domain.backend_capabilities import CAPABILITIES, COUNTING_PATHS, NAMING_PATHS
from quotas.catalog import models as catalog

ROOT = Path(__file__).parents[2]
SEARCHED = ("allocations", "frontend", "portal", "quotas")
KNOW_PATHS = ("allocations/cluster/backends/", "allocations/domain/backend_capabilities.py", "quotas/catalog/")
"""Modules that may name a path: those that discover flavors of it, define its capabilities, or hold slices by it."""


def names_of_paths(code: str) -> list[int]:
    """Return the lines on which the code names a path, as text or as ``Path.DRA``."""
    names = catalog.Path.names
    return [
        node.lineno
        for node in ast.walk(ast.parse(code))
        if (isinstance(node, ast.Constant) and node.value in CAPABILITIES)
        or (isinstance(node, ast.Attribute) and node.attr in names)
    ]


def in_template(text: str) -> list[int]:
    named = re.compile("|".join(f"[\"']{re.escape(path)}[\"']" for path in CAPABILITIES))
    return [number for number, line in enumerate(text.splitlines(), 1) if named.search(line)]


def searched() -> Iterator[tuple[str, list[int]]]:
    for package in SEARCHED:
        for file in (ROOT / package).rglob("*"):
            name = file.relative_to(ROOT).as_posix()
            if "/migrations/" in name or name.startswith(KNOW_PATHS):
                continue
            if file.suffix == ".py":
                yield name, names_of_paths(file.read_text(encoding="utf-8"))
            elif file.suffix == ".html":
                yield name, in_template(file.read_text(encoding="utf-8"))


def test_only_the_catalogue_and_the_backends_name_a_path():
    found = dict(searched())
    assert len(found) > 100
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "code",
    ['flavor.path == "dra"', "flavor.path != Path.DRA", 'rows.filter(flavor__path="device-plugin")', '{"dra": "x"}'],
)
def test_a_path_that_is_named_is_found(code: str):
    assert names_of_paths(code) == [1]


def test_a_path_that_is_named_in_a_template_is_found():
    assert in_template("<p>\n{% if flavor.path == 'dra' %}") == [2]


def test_every_path_of_the_catalogue_has_capabilities_and_a_backend():
    labels = {path: backend.label for path, backend in CAPABILITIES.items()}
    assert labels == dict(catalog.Path.choices)
    assert registry.BACKENDS.keys() == CAPABILITIES.keys()
    assert catalog.HOLDER_PODS.keys() == CAPABILITIES.keys()


def test_devices_are_either_named_or_counted():
    assert set(catalog.Path.values) == NAMING_PATHS | COUNTING_PATHS
    assert not NAMING_PATHS & COUNTING_PATHS
