import pytest

from bench import fragmentation, mig


def test_the_guide_shows_what_is_measured() -> None:
    text = mig.GUIDE.read_text(encoding="utf-8")
    assert mig.written(text) == text, "python -m bench.mig --write"


def test_a_guide_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match=r"mig\.md lacks the marks <!-- products: begin -->"):
        mig.written("")


@pytest.mark.parametrize("choice", fragmentation.GPU_CHOICES.values(), ids=fragmentation.GPU_CHOICES)
def test_largest_first_every_large_request_of_a_fitting_list_finds_a_place(choice: fragmentation.GpuChoice) -> None:
    _, fleet = fragmentation.place_all(0, fragmentation.ORDERS["largest first"], choice)
    assert not set(fleet.refused) & set(fragmentation.LARGE)
