from pathlib import Path

from allocations import states

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "phases.md"


def test_the_guide_shows_the_phases_as_they_are_derived() -> None:
    assert states.table() in GUIDE.read_text(encoding="utf-8")
