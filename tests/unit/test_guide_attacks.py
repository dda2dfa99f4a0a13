"""The table of docs/evidence/attacks.md is that of the tests."""

from tests.cluster.attacks import __main__ as attacks


def test_the_guide_has_the_attacks_that_are_tried() -> None:
    text = attacks.GUIDE.read_text(encoding="utf-8")
    assert attacks.written(text) == text, "python -m tests.cluster.attacks --write"
