"""Template tags for icons, badges and times."""

from datetime import UTC, datetime
from functools import cache

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from frontend.presenters.allocations import Card
from frontend.presenters.phases import PhaseBadge

register = template.Library()


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
def action(card: Card, verb: str, symbol: str, word: str) -> SafeString:
    """Return the link to what a person may do with an allocation; its question opens in the dialog."""
    return format_html(
        '<a id="{verb}-{id}" class="button" href="{address}/{verb}" hx-get="{address}/{verb}" hx-target="#dialog" '
        'hx-swap="innerHTML">{icon} {word}<span class="unseen"> {name}</span></a>',
        **{"verb": verb, "id": card.id, "address": card.address, "icon": icon(symbol), "word": word},
        name=card.row.name,
    )


@register.simple_tag
def moment(at: datetime | None, style: str = "minute") -> SafeString | str:
    """Return a time in UTC, which ``page.js`` shows in the reader's zone. ``style`` is ``minute`` or ``second``."""
    if at is None:
        return "–"
    utc = at.astimezone(UTC)
    shown = f"{utc:%Y-%m-%d %H:%M:%S}" if style == "second" else f"{utc:%Y-%m-%d %H:%M}"
    return format_html('<time datetime="{}" data-style="{}">{} UTC</time>', utc.isoformat(), style, shown)
