"""Template tags of the pages of costs: their navigation."""

from typing import Any

from django import template
from django.template import RequestContext

from frontend.presenters import costs_sections

register = template.Library()


@register.inclusion_tag("frontend/cost_sections.html", takes_context=True)
def cost_sections(context: RequestContext) -> dict[str, Any]:
    """Show the sections of costs that the reader may see."""
    request = context["request"]
    return {"sections": costs_sections.sections(request.user, request.path)}
