"""Exact amounts: Fractions inside, decimal strings outside, rounded once at the end."""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import lcm
from typing import Annotated, Any

MONEY_PLACES = 4
HOURS_PLACES = 6
Exact = int | Fraction | Decimal


def hours(seconds: Exact) -> Fraction:
    return Fraction(seconds) / 3600


def text(amount: Exact, places: int = MONEY_PLACES) -> str:
    """Return `amount` as a decimal string with exactly `places` places, half to even; never `-0`, no exponent."""
    exact = amount if isinstance(amount, Fraction) else Fraction(amount)
    units, rest = divmod(exact.numerator * 10**places, exact.denominator)  # a product of Fractions takes twice as long
    twice = 2 * rest - exact.denominator
    return _placed(units + (twice > 0 or (twice == 0 and units % 2 == 1)), places)


def hours_text(amount: Exact) -> str:
    """Return hours as a decimal string; `0` if there are none, so that it differs from a few seconds."""
    return text(amount, HOURS_PLACES) if amount else "0"


def plain(amount: Decimal) -> str:
    """Return a decimal string without zeros at its end, and without an exponent: ``1.5``, ``100``."""
    return f"{amount.normalize():f}"


@dataclass(frozen=True)
class Written:
    """How an answer writes a number: as a decimal string, which keeps all digits."""

    text: Callable[[Any], str]


DecimalString = Annotated[str, Written(str)]
Money = Annotated[Fraction, Written(text)]
Hours = Annotated[Fraction, Written(lambda amount: text(amount, HOURS_PLACES))]
HoursOrZero = Annotated[Fraction, Written(hours_text)]
PlainDecimal = Annotated[Decimal, Written(plain)]


def split(total: Exact, weights: Sequence[Exact], places: int = MONEY_PLACES) -> list[Decimal]:
    """Return parts of `total` in proportion to `weights`, each with `places` places, that add up to the rounded total.

    Largest remainder (Hamilton): every part is rounded down, and the remaining units go to the largest remainders, the
    first of equals first. Weights are not negative and not all zero.
    """
    shares = _whole(weights)
    whole = sum(shares)
    if not shares or min(shares) < 0 or not whole:
        raise ValueError("weights must be non-negative and not all zero")
    units = round(Fraction(total) * 10**places)
    divided = [divmod(units * share, whole) for share in shares]
    parts = [part for part, _ in divided]
    by_remainder = sorted(range(len(parts)), key=lambda i: -divided[i][1])
    for i in by_remainder[: units - sum(parts)]:
        parts[i] += 1
    return [Decimal(_placed(part, places)) for part in parts]


class Split:
    """What `split` does, of parts that come one after the other, twice in the same order, and are not kept.

    It keeps 8 bytes of each: its remainder, to 64 bits. `note` all of them first; then `part` returns one at a time.
    """

    def __init__(self, total: Exact, places: int = MONEY_PLACES) -> None:
        """``total`` is the sum of the parts."""
        self._places = places
        self._units = round(Fraction(total) * 10**places)
        self._scale = self._units / Fraction(total) if total else Fraction(0)
        self._remainders = array("Q")
        self._left, self._at = self._units, 0
        self._least: tuple[int, int] | None = None

    def note(self, part: Fraction) -> None:
        """Note the next part."""
        whole, remainder = self._divided(part)
        self._left -= whole
        self._remainders.append(remainder)

    def part(self, part: Fraction) -> Decimal:
        """Return the next part, rounded."""
        if self._least is None:
            self._least = self._rounded_up()
        least, equals = self._least
        remainder, self._at = self._remainders[self._at], self._at + 1
        is_up = remainder > least or (remainder == least and equals > 0)
        if remainder == least:
            self._least = least, equals - 1
        return Decimal(_placed(self._divided(part)[0] + is_up, self._places))

    def _divided(self, part: Fraction) -> tuple[int, int]:
        amount = part * self._scale
        whole = amount.numerator // amount.denominator
        return whole, (amount.numerator - whole * amount.denominator << 64) // amount.denominator

    def _rounded_up(self) -> tuple[int, int]:
        """Return the least remainder that is rounded up, and how many of those equal to it are."""
        if not self._left:
            return 1 << 64, 0
        largest = sorted(self._remainders, reverse=True)[: self._left]
        return largest[-1], largest.count(largest[-1])


def _whole(weights: Sequence[Exact]) -> Sequence[int]:
    """Return whole numbers in the same proportion: their arithmetic is many times faster than that of Fractions."""
    exact = [weight if isinstance(weight, int) else Fraction(weight) for weight in weights]
    base = lcm(*{weight.denominator for weight in exact})
    return [weight.numerator * (base // weight.denominator) for weight in exact]


def _placed(units: int, places: int) -> str:
    sign, digits = "-" if units < 0 else "", str(abs(units)).rjust(places + 1, "0")
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"
