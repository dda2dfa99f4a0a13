"""Template tags of the pages of costs: their navigation."""

from typing import Any

from django import template
from django.template import RequestContext
from django.utils.html import format_html

from frontend.presenters import costs_sections

register = template.Library()


@register.inclusion_tag("frontend/cost_sections.html", takes_context=True)
def cost_sections(context: RequestContext) -> dict[str, Any]:
    """Show the sections of costs that the reader may see."""
    request = context["request"]
    return {"sections": costs_sections.sections(request.user, request.path)}


@register.simple_tag(takes_context=True)
def current_in_costs(context: RequestContext) -> str:
    """Return the attribute that highlights Costs in the header on every page of costs."""
    path = context["request"].path if "request" in context else ""
    if not costs_sections.is_of_costs(path):
        return ""
    return format_html(' aria-current="{}"', "page" if path == "/costs" else "true")
