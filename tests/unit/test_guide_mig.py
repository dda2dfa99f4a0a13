from pathlib import Path

import pytest

from bench import fragmentation, mig

PAGES = pytest.mark.parametrize("page", mig.TABLES_OF, ids=lambda page: page.parent.name)


@PAGES
def test_the_docs_show_what_is_measured(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert mig.written(page, text) == text, "python -m bench.mig --write"


@PAGES
def test_a_page_without_marks_is_refused(page: Path) -> None:
    with pytest.raises(ValueError, match=r"mig\.md lacks the marks <!-- [a-z-]+: begin -->"):
        mig.written(page, "")


@pytest.mark.parametrize("choice", fragmentation.GPU_CHOICES.values(), ids=fragmentation.GPU_CHOICES)
def test_largest_first_every_large_request_of_a_fitting_list_finds_a_place(choice: fragmentation.GpuChoice) -> None:
    _, fleet = fragmentation.place_all(0, fragmentation.ORDERS["largest first"], choice)
    assert not set(fleet.refused) & set(fragmentation.LARGE)
