from pathlib import Path

from allocations.domain import phases

GUIDE = Path(__file__).parents[2] / "docs" / "reference" / "phases.md"


def test_the_guide_shows_the_phases_as_they_are_derived() -> None:
    assert phases.table() in GUIDE.read_text(encoding="utf-8")
