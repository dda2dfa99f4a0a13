"""Template tags for icons, badges and times."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from itertools import zip_longest

from django import template
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from frontend import time_zone
from frontend.presenters.phases import PhaseBadge

register = template.Library()
MINUTE = "2026-11-25 15:28"
UTC_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?) UTC")


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
def moment(at: datetime | None, style: str = "minute") -> SafeString | str:
    """Return a time in the reader's zone, which its title names. ``style`` is ``minute`` or ``second``."""
    return "–" if at is None else _time(at, seconds=style == "second")


@register.filter
def times(sentence: object) -> SafeString:
    """Return a sentence, or HTML, whose times in UTC, such as ``2026-11-25 15:28 UTC``, are in the reader's zone."""
    text = str(sentence)
    parts = [mark_safe(part) if isinstance(text, SafeString) else part for part in UTC_TIME.split(text)]  # noqa: S308
    found = [datetime.fromisoformat(part).replace(tzinfo=UTC) for part in parts[1::2]]
    shown = [_time(at, seconds=len(part) > len(MINUTE)) for at, part in zip(found, parts[1::2], strict=True)]
    return format_html_join(
        "", "{}", ((part,) for pair in zip_longest(parts[::2], shown, fillvalue="") for part in pair)
    )


def _time(at: datetime, *, seconds: bool) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        at.astimezone(UTC).isoformat(),
        time_zone.title(at),
        time_zone.words(at, seconds=seconds),
    )
