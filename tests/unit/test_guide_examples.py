"""The table of published examples in docs/guide/examples.md is that of the tests."""

from tests.cluster.published import __main__ as published


def test_the_guide_has_the_examples_that_are_tried() -> None:
    text = published.GUIDE.read_text(encoding="utf-8")
    assert published.written(text) == text, "python -m tests.cluster.published --write"


def test_every_example_either_runs_adapted_or_says_why_not() -> None:
    for row in published.examples():
        assert ("adapted" in row) != ("why_not" in row), row["example"]
        assert ("by" in row) == ("adapted" in row), row["example"]
