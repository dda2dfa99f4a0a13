"""YAML that is handed out: what PyYAML reads of it, and that nothing else writes any."""

import ast
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from portal.yaml_text import to_yaml
from tests.support.odd_strings import FAILED, ODD_STRINGS

ROOT = Path(__file__).parents[2]
PRODUCT = ("allocations", "frontend", "portal", "quotas")


@given(st.dictionaries(ODD_STRINGS, ODD_STRINGS | st.lists(ODD_STRINGS) | st.none() | st.booleans() | st.integers()))
def test_a_reader_of_yaml_1_1_reads_what_was_written(content):
    assert yaml.safe_load(to_yaml(content)) == content


@pytest.mark.parametrize("text", FAILED)
def test_what_some_reader_takes_for_no_string_is_quoted_as_key_and_value(text):
    assert to_yaml({text: text}) == f"'{text}': '{text}'\n"


def test_ordinary_strings_are_not_quoted():
    content = {"image": "nvcr.io/nvidia/pytorch:25.09-py3", "path": "/data", "key": "nvidia.com/gpu", "tone": "é"}
    assert to_yaml(content) == "image: nvcr.io/nvidia/pytorch:25.09-py3\npath: /data\nkey: nvidia.com/gpu\ntone: 'é'\n"


def test_what_is_there_twice_is_written_twice():
    labels = {"app": "train"}
    assert "&" not in to_yaml({"metadata": {"labels": labels}, "selector": labels})


def test_nothing_else_of_the_product_writes_yaml():
    writers = {
        str(file.relative_to(ROOT))
        for package in PRODUCT
        for file in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr in ("dump", "safe_dump", "dump_all", "safe_dump_all")
        and isinstance(node.value, ast.Name)
        and node.value.id == "yaml"
    }
    assert writers == {"portal/yaml_text.py"}
