"""The guide's table of slices lists what the cluster tests try."""

from pathlib import Path

from tests.support.cluster.slices import ROWS

GUIDE = Path(__file__).parents[2] / "docs/concepts/slices.md"


def test_the_guide_has_a_row_for_each_kind_of_slice():
    guide = GUIDE.read_text()
    assert [row.key for row in ROWS if f"| {row.title} | {row.path} |" not in guide] == []
