"""Template tags for icons and times."""

from datetime import UTC, datetime

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag
def icon(name: str) -> SafeString:
    """Return a symbol of the sprite; hidden from screen readers, since it is always beside a word."""
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}#{}"/></svg>', static("frontend/icons.svg"), name
    )


@register.simple_tag
def moment(at: datetime | None, style: str = "minute") -> SafeString | str:
    """Return a time in UTC, which ``page.js`` shows in the reader's zone. ``style`` is ``minute`` or ``second``."""
    if at is None:
        return "–"
    utc = at.astimezone(UTC)
    shown = f"{utc:%Y-%m-%d %H:%M:%S}" if style == "second" else f"{utc:%Y-%m-%d %H:%M}"
    return format_html('<time datetime="{}" data-style="{}">{} UTC</time>', utc.isoformat(), style, shown)
