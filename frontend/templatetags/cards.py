"""Allocations as cards. A page has a hundred of them, and as templates they took half of its time."""

from django import template
from django.template.context import Context
from django.template.defaulttags import CsrfTokenNode
from django.utils.html import format_html
from django.utils.safestring import SafeString

from frontend.presenters.allocations import Card
from frontend.templatetags.portal import icon, phase, times

register = template.Library()
CARD = """
<article class="card allocation" data-tone="{tone}" aria-labelledby="name-{id}">
<header>
<h3 id="name-{id}"><a id="open-{id}" href="{address}">{name}</a></h3>
{phase}
</header>
<p><strong>{slices}</strong> <code>{offering}</code> <span class="quiet">in {project}</span></p>
{place}
{sentence}
<dl class="facts">
<div><dt>Time</dt><dd>{time}</dd></div>
<div><dt>Cost so far</dt><dd class="figure">{cost}{per_hour}</dd></div>
</dl>
{actions}
</article>
"""


@register.simple_tag(takes_context=True)
def allocation_card(context: Context, card: Card) -> SafeString:
    """Return an allocation as a card."""
    row = card.row
    return format_html(
        CARD,
        tone=card.badge.tone,
        id=card.id,
        address=card.address,
        name=row.name,
        phase=phase(card.badge),
        slices=card.slices,
        offering=row.offering.key,
        project=row.project.slug,
        place=format_html("<p>{}</p>", card.place) if card.place else "",
        sentence=format_html('<p class="quiet">{}</p>', times(card.sentence))
        if row.phase != "active" and card.sentence
        else "",
        time=card.time,
        cost=card.cost,
        per_hour=_per_hour(card),
        actions=actions(context, card),
    )


@register.simple_tag(takes_context=True)
def actions(context: Context, card: Card) -> SafeString | str:
    """Return what the person may do with an allocation now, as buttons; empty if it is nothing."""
    if not (card.can_release or card.can_extend or card.can_retry):
        return ""
    return format_html(
        '<div class="actions">\n{}{}{}\n</div>',
        _retry(context, card) if card.can_retry else "",
        _action(card, "extend", "clock", "Extend") if card.can_extend else "",
        _action(card, "release", "stop", "Release" if card.row.held_at else "Cancel") if card.can_release else "",
    )


def _per_hour(card: Card) -> SafeString | str:
    if card.detail.per_hour is not None:
        return format_html(" <small>{} per hour</small>", card.per_hour)
    return format_html(" <small>{}</small>", card.per_hour) if card.cost != card.per_hour else ""


def _retry(context: Context, card: Card) -> SafeString:
    return format_html(
        '<form method="post" action="{}/retry">{}<button id="retry-{}" class="main">{} Try again</button></form>\n',
        card.address,
        CsrfTokenNode().render(context),
        card.id,
        icon("again"),
    )


def _action(card: Card, verb: str, symbol: str, word: str) -> SafeString:
    """Return the link to what a person may do with an allocation; its question opens in the dialog."""
    return format_html(
        '<a id="{verb}-{id}" class="button" href="{address}/{verb}" hx-get="{address}/{verb}" hx-target="#dialog" '
        'hx-swap="innerHTML">{icon} {word}<span class="unseen"> {name}</span></a>\n',
        verb=verb,
        id=card.id,
        address=card.address,
        icon=icon(symbol),
        word=word,
        name=card.row.name,
    )
