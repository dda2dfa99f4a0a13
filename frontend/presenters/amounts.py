"""Formats numbers, money, hours, durations, CPU and memory: one format for each (docs/contribute/numbers.md)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from portal.core.money import Exact, split, text
from quotas.catalog.node_shares import NodeShare
from quotas.costs.selectors import Charge

NOT_PRICED = "not priced"
NOT_KNOWN_YET = "not known yet"
"""Of a cost with bills or fixed costs whose shares are not known yet."""
INCOMPLETE = " *"
"""Marks a sum that leaves something out; a footnote of the page says what."""
LEAST_OF_TWO_PLACES = Fraction(1, 100)
MINUTE = timedelta(minutes=1)


def number(amount: Exact, places: int = 2) -> str:
    """Return ``4,990.60``; what is more than nothing and rounds to it, as ``under 0.01``."""
    shown = Decimal(text(amount, places))
    return f"under {Decimal(1).scaleb(-places)}" if amount > 0 and not shown else f"{shown:,}"


def money(amount: Exact | None, currency: str = "") -> str:
    """Return ``4,990.60 EUR``; without a currency for a table that has it in its head."""
    return NOT_PRICED if amount is None else f"{number(amount)} {currency}".rstrip()


def rate(amount: Exact | None, currency: str = "") -> str:
    """Return what one hour costs, as ``money``; below 0.01 with four places, so that a cheap slice is not free."""
    if amount is None:
        return NOT_PRICED
    return f"{number(amount, 4 if 0 < amount < LEAST_OF_TWO_PLACES else 2)} {currency}".rstrip()


def marked(words: str, unpriced: Fraction) -> str:
    """Return the amount with a footnote mark if it is incomplete: ``363.16 *``."""
    return words + INCOMPLETE if unpriced else words


def cost(charge: Charge, currency: str) -> str:
    """Return ``6.40 EUR``, with what it leaves out; ``not priced`` if that is all of it."""
    amount = money(charge.cost, currency)
    return amount if charge.cost is None or not charge.unpriced else f"{amount}, {left_out(charge.unpriced)}"


def held_per_hour(amount: Fraction | None, currency: str, unpriced: int) -> str:
    """Return ``6.40 EUR per hour``, with how many allocations without a price it leaves out."""
    if amount is None:
        return NOT_PRICED
    allocations = "1 allocation that has" if unpriced == 1 else f"{unpriced} allocations that have"
    return f"{rate(amount, currency)} per hour" + (f", without {allocations} no price" if unpriced else "")


def left_out(unpriced: Fraction) -> str:
    """Return what an incomplete cost leaves out: ``2.00 GPU-hours have no price``; empty if nothing."""
    if not unpriced:
        return ""
    return "1.00 GPU-hour has no price" if unpriced == 1 else f"{number(unpriced)} GPU-hours have no price"


def forecast_range(low: str, total: str, high: str, currency: str) -> str:
    """Return where a forecast probably ends. Past errors to one side alone leave the total at one end of its range,
    which then says nothing of the other side (ADR 42).
    """
    least, middle, most = (round(Decimal(amount), 2) for amount in (low, total, high))
    if least == most:
        return f"80 % range: within 0.01 {currency}"
    if least == middle < most:
        return f"Probably more: up to {money(most, currency)}"
    if least < middle == most:
        return f"Probably less: down to {money(least, currency)}"
    return f"80 % range: {number(least)} to {money(most, currency)}"


def hours(amount: Fraction) -> str:
    """Return a duration in hours with at most two places: ``8``, ``0.5``, ``1.25``."""
    return text(amount, 2).rstrip("0").rstrip(".")


def meter(used: Fraction, of: Fraction | int) -> int:
    """Return the used part in per cent, at most 100; of nothing it is all as soon as something is used."""
    return min(100, round(100 * used / of)) if of else 100 if used else 0


def span(length: timedelta) -> str:
    """Return the two largest units: ``2 d 4 h``, ``3 h 12 min``, ``12 min``; below a minute ``under 1 min``."""
    minutes = max(0, int(length.total_seconds())) // 60
    days, minutes = divmod(minutes, 24 * 60)
    hours_, minutes = divmod(minutes, 60)
    parts = [(days, "d"), (hours_, "h"), (minutes, "min")]
    shown = [f"{number} {unit}" for number, unit in parts if number][:2]
    return " ".join(shown) or "under 1 min"


def relative(at: datetime, now: datetime) -> str:
    """Return a time by its distance: ``in 3 h 12 min``, ``3 h ago``. What is past needs its largest unit alone."""
    if at > now:
        return f"in {span(at - now)}"
    return f"{' '.join(span(now - at).split()[: 3 if now - at < MINUTE else 2])} ago"


def node_share(share: NodeShare) -> str:
    """Return ``2.9 CPU and 31 GiB of memory``, rounded down; empty if no node has reported its capacity."""
    return f"{cpu(share.cpu_millicores)} CPU and {memory(share.memory_mib)} of memory" if share else ""


def cpu(millicores: int) -> str:
    """Return CPUs with one place, below one CPU with two."""
    place = 100 if millicores >= 1000 else 10
    return text(Fraction(millicores // place * place, 1000), 2).rstrip("0").rstrip(".")


def memory(mib: int) -> str:
    return f"{mib // 1024} GiB" if mib >= 10 * 1024 else f"{mib} MiB"


def rounded(parts: Sequence[Decimal]) -> list[Decimal]:
    """Return the amounts rounded so that they add up, unless a bill below what was rated makes some negative."""
    total = sum(parts, Decimal(0))
    if min(parts, default=total) < 0:
        return [round(part, 2) for part in parts]
    return split(total, parts, 2) if total else [Decimal("0.00")] * len(parts)
