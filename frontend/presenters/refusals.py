"""The limits that a request exceeds, and alternatives, as links that fill the form."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone

from allocations.domain.allocation_spec import LABELLED
from allocations.requests.preview import Preview
from frontend.base_form import of_claim
from frontend.forms import CONSTRAINT_LABELS, MINUTE
from frontend.presenters import amounts, phases
from frontend.presenters.phases import PhaseBadge
from portal.core.errors import Violation

KEPT = ("project", *(each.name for each in LABELLED), "name", "priority", "spread")
"""Fields that an alternative leaves as they are."""
SPREAD = "“On several nodes”"
OF_REST = (
    (re.compile(r"(; GET /\S+ lists them| \(path dra in GET /offerings\))"), ""),
    (re.compile(r"GET /offerings lists what is\."), "Choose one that is listed."),
    (re.compile(r"\bset constraints\.spread\b"), f"tick {SPREAD}"),
    (re.compile(r"\bleave spread\b"), f"leave {SPREAD}"),
    *((re.compile(rf"\b(constraints\.)?{name}\b"), f"“{label}”") for name, label in CONSTRAINT_LABELS.items()),
)
"""What refusals name as REST does, and how the form calls it."""
SUBJECTS = {"team": "your team", "project": "the project", "member": "you", "capacity": "the fleet", "node": "a node"}


@dataclass(frozen=True)
class ShownViolation:
    """A violation; ``who`` has the limit that is exceeded, as pages name the holder."""

    who: str
    violation: Violation

    @property
    def is_node(self) -> bool:
        return self.violation.dimension.startswith("node:")


@dataclass(frozen=True)
class Chip:
    """An alternative that no rule refuses; ``url`` is the form filled with it."""

    text: str
    starts_at: datetime | None
    price: str
    badge: PhaseBadge
    url: str
    is_spread: bool = False


def violations(found: Iterable[Violation]) -> list[ShownViolation]:
    return [_shown(one) for one in found]


def in_words(sentence: str) -> str:
    """Return a sentence of a refusal in the words of the form."""
    for pattern, words in OF_REST:
        sentence = pattern.sub(words, sentence)
    return sentence


def _shown(one: Violation) -> ShownViolation:
    detail, hint = map(in_words, of_claim(one.detail, one.hint))
    who = SUBJECTS.get(one.dimension.partition(":")[0], one.dimension)
    return ShownViolation(who, replace(one, detail=detail, hint=hint))


def spread_chip(seen: Preview, form: Mapping[str, Any]) -> Chip:
    """Return the same request on several nodes, which no rule refuses, as a link."""
    values = {name: form[name] for name in (*KEPT, "offering", "count", "length", "hours") if form.get(name)}
    price = amounts.NOT_PRICED if seen.price_total is None else amounts.money(seen.price_total, seen.currency)
    return Chip(
        text=f"{seen.spec.count} × {seen.offering.key}",
        starts_at=None,
        price=price,
        badge=phases.FITS[seen.fits],
        url=f"{reverse('request')}?{urlencode(values | {'spread': 'on'})}",
        is_spread=True,
    )


def chips(alternatives: Sequence[Mapping[str, Any]], form: Mapping[str, Any], currency: str) -> list[Chip]:
    """Return the alternatives as links, each once; ``form`` has the requested values, which each link changes where
    needed.
    """
    kept = {name: form[name] for name in KEPT if form.get(name)}
    found = []
    for other in alternatives:
        hours = amounts.hours(Fraction(Decimal(other["hours"])))
        price = None if other["price"] is None else Fraction(Decimal(other["price"]))
        query = kept | {"offering": other["offering"], "count": other["count"], "length": "custom", "hours": hours}
        at = other["starts_at"] + timedelta(minutes=1) if other["starts_at"] else None
        if at:
            query["starts_at"] = f"{timezone.localtime(at):{MINUTE}}"
        found.append(
            Chip(
                text=f"{other['count']} × {other['offering']}",
                starts_at=at,
                price=f"{hours} h, {amounts.NOT_PRICED}"
                if price is None
                else f"{amounts.money(price, currency)} for {hours} h",
                badge=phases.FITS[other["fits"]],
                url=f"{reverse('request')}?{urlencode(query)}",
            )
        )
    return list({chip.url: chip for chip in reversed(found)}.values())[::-1]
