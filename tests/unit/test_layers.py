"""The layers that import-linter checks leave out nothing: its ``exhaustive`` is for the inside of one package only."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_module_of_the_portal_is_in_a_layer():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = {name for layer in contracts[0]["layers"] for name in re.split(r"\s*[|:]\s*", layer)}
    found = {path for path in (ROOT / "portal").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert {f"portal.{path.stem}" for path in found} - {"portal.__init__"} <= layers
