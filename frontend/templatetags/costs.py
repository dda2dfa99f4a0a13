"""Template tags of the pages of costs: their navigation, and what of their history is simulated."""

from datetime import datetime
from typing import Any

from django import template
from django.template import RequestContext

from frontend.presenters import costs_sections
from frontend.presenters.simulated_history import simulated_line

register = template.Library()


@register.inclusion_tag("frontend/cost_sections.html", takes_context=True)
def cost_sections(context: RequestContext) -> dict[str, Any]:
    """Show the sections of costs that the reader may see."""
    request = context["request"]
    return {"sections": costs_sections.sections(request.user, request.path)}


@register.inclusion_tag("frontend/_simulated.html")
def simulated_history(start: datetime) -> dict[str, str]:
    """Say that what a page shows from ``start`` on is simulated in part; nothing if it is not. One query."""
    return {"sentence": simulated_line(start)}
