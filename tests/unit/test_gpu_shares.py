"""What the uses of a GPU are charged of it: a function of their times, whatever was recorded first."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from quotas.metering import gpu_shares

START = datetime(2026, 11, 2, tzinfo=UTC)
HALF, FOUR_SEVENTHS = Fraction(1, 2), Fraction(4, 7)
WEIGHTS = [Fraction(1), *(Fraction(n, 7) for n in (1, 2, 4)), *(Fraction(n, 8) for n in (2, 4))]


def hour(n: float) -> datetime:
    return START + timedelta(hours=n)


@dataclass(frozen=True)
class Use:
    name: str
    start: datetime
    end: datetime | None
    weight: Fraction
    is_held: bool = True

    @property
    def rank(self) -> tuple[bool, datetime, str, str]:
        return gpu_shares.rank(self.start, self.name, self.name, is_held=self.is_held)


def use(name: str, start: float, end: float | None, weight: Fraction, *, is_held: bool = True) -> Use:
    return Use(name, hour(start), None if end is None else hour(end), weight, is_held)


def shares(*uses: Use, start: float = 0, end: float = 9) -> dict[str, list[tuple[float, float, Fraction]]]:
    """Return the hours of each use and what it is charged in them."""
    found: dict[str, list[tuple[float, float, Fraction]]] = {}
    for one in gpu_shares.of_gpu(uses, hour(start), hour(end)):
        start, end = ((moment - START) / timedelta(hours=1) for moment in (one.start, one.end))
        found.setdefault(one.use.name, []).append((start, end, one.gpus))
    return found


def test_who_began_later_is_charged_what_is_left_while_both_are_there() -> None:
    assert shares(use("4g", 1, 3, FOUR_SEVENTHS), use("3g", 2, 4, HALF)) == {
        "4g": [(1, 3, FOUR_SEVENTHS)],
        "3g": [(2, 3, Fraction(3, 7)), (3, 4, HALF)],
    }
    assert shares(use("4g", 2, 4, FOUR_SEVENTHS), use("3g", 1, 3, HALF)) == {
        "3g": [(1, 3, HALF)],
        "4g": [(2, 3, HALF), (3, 4, FOUR_SEVENTHS)],
    }


def test_what_fits_together_is_charged_its_weight() -> None:
    assert shares(use("a", 0, 2, HALF), use("b", 1, None, HALF)) == {"a": [(0, 2, HALF)], "b": [(1, 9, HALF)]}


def test_of_uses_that_begin_at_once_the_smaller_slot_is_first() -> None:
    assert shares(use("b", 0, 1, HALF), use("a", 0, 1, FOUR_SEVENTHS)) == {
        "a": [(0, 1, FOUR_SEVENTHS)],
        "b": [(0, 1, Fraction(3, 7))],
    }


def test_what_is_held_is_charged_before_what_is_unmanaged() -> None:
    assert shares(use("4g", 0, 2, FOUR_SEVENTHS, is_held=False), use("3g", 1, 2, HALF)) == {
        "3g": [(1, 2, HALF)],
        "4g": [(0, 1, FOUR_SEVENTHS), (1, 2, HALF)],
    }


def test_who_begins_when_another_ends_is_beside_it_at_no_time() -> None:
    assert shares(use("a", 0, 1, FOUR_SEVENTHS), use("b", 1, 2, HALF))["b"] == [(1, 2, HALF)]


def test_a_use_for_which_nothing_is_left_is_charged_nothing() -> None:
    assert shares(use("a", 0, 2, Fraction(1)), use("b", 1, 3, HALF)) == {
        "a": [(0, 2, Fraction(1))],
        "b": [(2, 3, HALF)],
    }


def test_a_use_without_a_time_is_charged_nothing() -> None:
    assert shares(use("a", 1, 1, HALF), use("b", 0, 2, FOUR_SEVENTHS)) == {"b": [(0, 2, FOUR_SEVENTHS)]}


moments = st.integers(0, 9)


@st.composite
def uses(draw: st.DrawFn) -> list[Use]:
    found = []
    for name in draw(st.lists(st.sampled_from("abcdefg"), unique=True, max_size=7)):
        start, end = sorted((draw(moments), draw(moments)))
        is_held, weight = draw(st.booleans()), draw(st.sampled_from(WEIGHTS))
        found.append(use(name, start, draw(st.sampled_from([end, None])), weight, is_held=is_held))
    return found


@given(uses(), st.randoms())
def test_the_order_in_which_uses_are_recorded_has_no_influence(found: list[Use], random: Random) -> None:
    assert shares(*random.sample(found, len(found))) == shares(*found)


@given(uses())
def test_at_every_moment_the_gpu_is_charged_as_far_as_it_is_in_use_and_no_further(found: list[Use]) -> None:
    charged = gpu_shares.of_gpu(found, hour(0), hour(9))
    for n in range(9):
        there = sum((one.weight for one in found if one.start <= hour(n) and (not one.end or one.end > hour(n))), 0)
        assert sum((one.gpus for one in charged if one.start <= hour(n) < one.end), 0) == min(1, there)


@given(uses(), st.integers(0, 9))
def test_windows_that_adjoin_have_the_shares_of_the_whole(found: list[Use], cut: int) -> None:
    def hours(start: int, end: int) -> dict[str, Fraction]:
        charged = shares(*found, start=start, end=end)
        return {
            name: sum((gpus * Fraction(t1 - t0) for t0, t1, gpus in of), Fraction(0)) for name, of in charged.items()
        }

    first, second, whole = hours(0, cut), hours(cut, 9), hours(0, 9)
    assert {name: first.get(name, 0) + second.get(name, 0) for name in {*first, *second}} == whole
