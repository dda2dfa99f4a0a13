"""Template tags for icons, badges, numbers and times."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache

from django import template
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from frontend import time_zone
from frontend.presenters import amounts
from frontend.presenters.phases import PhaseBadge
from portal.core import clock
from portal.core.money import Exact
from portal.core.quotation import QUOTED

register = template.Library()
MINUTE = "2026-11-25 15:28"
TIME = re.compile(rf"{QUOTED}|(?P<time>\d{{4}}-\d\d-\d\d \d\d:\d\d(?::\d\d)?) UTC", re.ASCII)


@register.simple_tag
@cache
def icon(name: str) -> SafeString:
    """Return a symbol of the sprite; hidden from screen readers, since it is always beside a word."""
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}#{}"/></svg>', static("frontend/icons.svg"), name
    )


@register.simple_tag
@cache
def phase(badge: PhaseBadge) -> SafeString:
    """Return a badge: its icon and its word."""
    return format_html('<span class="phase" data-tone="{}">{} {}</span>', badge.tone, icon(badge.icon), badge.word)


@register.simple_tag
def options(values: Iterable[tuple[str, str]], chosen: str) -> SafeString:
    """Return the options of a select by value and words. A loop in a template takes ten times as long, and an operator
    chooses among hundreds of projects.
    """
    marks = {True: mark_safe(" selected"), False: ""}
    rows = ((value, marks[value == chosen], words) for value, words in values)
    return format_html_join("\n", '<option value="{}"{}>{}</option>', rows)


@register.simple_tag
def numbers(first: int, last: int) -> str:
    """Return ``26 to 50``; ``26`` if that is all."""
    return f"{first} to {last}" if first < last else str(first)


@register.simple_tag
def moment(at: datetime | None, style: str = "minute") -> SafeString | str:
    """Return a time in the reader's zone, which its title names. ``style`` is ``minute``, ``second``, or ``relative``:
    ``3 h ago``, with the exact time in the title.
    """
    if at is None:
        return "–"
    return _time(at, amounts.relative(at, clock.now()) if style == "relative" else "", seconds=style == "second")


@register.filter
def number(amount: Exact | str | None, places: int = 2) -> str:
    """Return ``4,990.60``, or a dash for what is not known."""
    return "–" if amount is None else amounts.number(Fraction(amount), places)


@register.filter
def money(amount: Exact | str | None, currency: str = "") -> str:
    """Return ``4,990.60 EUR``; without a currency for a table that has it in its head."""
    return amounts.money(None if amount is None else Fraction(amount), currency)


@register.filter
def rate(amount: Exact | str | None, currency: str = "") -> str:
    """Return what one hour costs."""
    return amounts.rate(None if amount is None else Fraction(amount), currency)


@register.filter
def times(sentence: object) -> SafeString:
    """Return a sentence, or HTML, whose times in UTC, such as ``2026-11-25 15:28 UTC``, are in the reader's zone.

    What the sentence quotes of people stays as it is, and so does what no calendar has.
    """
    text, shown, at = str(sentence), [], 0
    as_is = mark_safe if isinstance(text, SafeString) else str
    for found in TIME.finditer(text):
        shown += [as_is(text[at : found.start()]), _of_utc(found["time"]) or as_is(found[0])]
        at = found.end()
    return format_html_join("", "{}", ((part,) for part in (*shown, as_is(text[at:]))))


def _of_utc(words: str | None) -> SafeString | None:
    """Return a time in UTC in the reader's zone; None if there is no such time."""
    try:
        at = datetime.fromisoformat(words or "").replace(tzinfo=UTC)
    except ValueError:
        return None
    return _time(at, seconds=len(words or "") > len(MINUTE))


def _time(at: datetime, words: str = "", *, seconds: bool) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        at.astimezone(UTC).isoformat(),
        time_zone.title(at),
        words or time_zone.words(at, seconds=seconds),
    )
