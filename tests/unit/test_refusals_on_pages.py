"""Refusals on pages: in the words of the form, not in those of REST."""

import ast
import re
from pathlib import Path

import pytest

from allocations.domain.allocation_spec import CONSTRAINTS
from allocations.requests import custom_claims, rules, validation
from frontend.presenters.refusals import in_words

OF_REST = re.compile(rf"GET /|constraints\.\w|\b({'|'.join(CONSTRAINTS)})\b")


@pytest.mark.parametrize("module", [rules, custom_claims, validation])
def test_no_sentence_of_a_refusal_names_on_a_page_what_only_rest_has(module):
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    sentences = [
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    shown = {in_words(one) for one in sentences if " " in one and not one.endswith(("\n", "    "))}
    assert [one for one in shown if OF_REST.search(one)] == []


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints_have_the_names_of_their_boxes(name):
    assert "_" not in in_words(f"Ask for at most 2, or leave out constraints.{name}.")


def test_a_way_out_of_one_node_is_named_as_its_box():
    said = in_words("Ask for at most 8, or set constraints.spread for up to 16 on several nodes.")
    assert said == "Ask for at most 8, or tick “On several nodes” for up to 16 on several nodes."
