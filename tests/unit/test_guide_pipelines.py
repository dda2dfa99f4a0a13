"""The guide of pipelines shows the very files that the cluster tests run."""

from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "pipelines.md"


@pytest.mark.parametrize(("name", "language"), [("pod.yaml", "yaml"), ("run.sh", "bash"), ("task.py", "python")])
def test_the_guide_has_the_file_as_it_is(name: str, language: str) -> None:
    text = (GUIDE.parent / "pipelines" / name).read_text(encoding="utf-8")
    assert f"```{language}\n{text}```" in GUIDE.read_text(encoding="utf-8")
