"""Requests that fill the form with one click: the operators' presets, and the person's last request."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from allocations.models import Allocation
from frontend.forms import LENGTHS
from frontend.presenters import amounts, offerings
from quotas.catalog.models import Offering, Preset

LAST = "Last request"


@dataclass(frozen=True)
class FilledForm:
    """A link that fills the form; ``words`` say with what: ``8 × NVIDIA H100 80GB HBM3, 24 h``."""

    name: str
    words: str
    url: str
    is_chosen: bool


def filled_forms(
    presets: Iterable[Preset], last: Allocation | None, offered: Iterable[str], values: Mapping[str, Any]
) -> list[FilledForm]:
    """Return the presets whose offering is in ``offered``, and the last request if it can be repeated so: a custom
    claim and an end date cannot. ``values`` are the form's; their project is kept.
    """
    keys = set(offered)
    project = values.get("project", "")
    found = [
        _filled(preset.name, preset.offering, preset.count, preset.hours, project, values)
        for preset in presets
        if preset.offering.key in keys
    ]
    if last is not None and last.offering.key in keys and last.claim is None and last.hours is not None:
        found.append(_filled(LAST, last.offering, last.count, last.hours, last.project.slug, values))
    return found


def _filled(
    name: str, offering: Offering, count: int, hours: Decimal, project: str, values: Mapping[str, Any]
) -> FilledForm:
    shown = amounts.hours(Fraction(hours))
    length = {"length": shown} if shown in LENGTHS else {"length": "custom", "hours": shown}
    query = {"project": project, "offering": offering.key, "count": str(count), **length}
    return FilledForm(
        name=name,
        words=f"{count} × {offerings.name(offering)}, {shown} h",
        url=f"{reverse('request')}?{urlencode(query)}",
        is_chosen=all(values.get(key) == value for key, value in query.items()),
    )
