"""The template tag that tells what of a history is simulated."""

from datetime import datetime

from django import template

from frontend.presenters.simulated_history import simulated_line

register = template.Library()


@register.inclusion_tag("frontend/_simulated.html")
def simulated_history(start: datetime) -> dict[str, str]:
    """Say that what a page shows from ``start`` on is simulated in part; nothing if it is not. One query."""
    return {"sentence": simulated_line(start)}
