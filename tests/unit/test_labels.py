"""The syntax of labels, as Kubernetes has it."""

import pytest

from portal.core.labels import is_key, is_value, problems


@pytest.mark.parametrize("key", ["app", "A", "a.b_c-d", "example.com/app", "a.b-c.d/X", "x" * 63, f"{'a.' * 126}a/x"])
def test_keys(key):
    assert is_key(key)


@pytest.mark.parametrize(
    "key",
    ["", "-a", "a-", "a b", "a/", "/a", "a/b/c", "A.com/a", "a..b/c", "x" * 64, f"{'a.' * 127}a/x", "a\n", "ä", "a'b"],
)
def test_what_is_no_key(key):
    assert not is_key(key)


@pytest.mark.parametrize(
    ("value", "fits"), [("", True), ("a.B_1", True), ("x" * 64, False), ("a/b", False), ("_", False)]
)
def test_values(value, fits):
    assert is_value(value) is fits


def test_each_problem_is_a_sentence():
    labels = {"a b": "x", "app": "-", **{f"n{n}": "" for n in range(15)}}
    assert [sentence[:25] for sentence in problems(labels)] == [
        "There are 17 labels. Give",
        "'a b' is not a valid labe",
        "'-' is not a valid value ",
    ]
