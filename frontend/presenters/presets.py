"""Requests that fill the form with one click: presets of operators and one's own, the last one, and one that ended."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from allocations.domain.allocation_spec import LABELLED, SPREAD, Constraints, Labels, Sharing
from allocations.models import Allocation
from frontend.forms import LENGTHS
from frontend.presenters import amounts, offerings
from quotas.catalog.models import Offering, Preset

LAST = "Last request"
NOT_IN_ADDRESS = ("csrfmiddlewaretoken", "key", "preset")
NOT_OF_REQUEST = {
    *NOT_IN_ADDRESS,
    *("check", "filter", "more", "fewer", "sort"),
    *("model", "memory", "kind", "price", "now"),
}
"""Fields of the form that are not part of what it requests."""


@dataclass(frozen=True)
class FilledForm:
    """A link that fills the form; ``words`` say with what: ``8 × NVIDIA H100 80GB HBM3, 24 h``. ``id`` is that of one's
    own preset, which can be removed, else None.
    """

    name: str
    words: str
    url: str
    is_chosen: bool
    id: int | None


def filled_forms(
    presets: Iterable[Preset], last: Allocation | None, offered: Iterable[str], values: QueryDict
) -> list[FilledForm]:
    """Return the presets whose offering is in ``offered``, and the last request if it can be repeated so: a custom
    claim and an end date cannot. ``values`` are the form's; their project is kept.
    """
    keys = set(offered)
    project = {"project": [values.get("project", "")]}
    found = [
        _filled(preset.name, preset.offering, preset.count, preset.hours, project | _fields(preset), values, preset)
        for preset in presets
        if preset.offering.key in keys
    ]
    if last is not None and last.offering.key in keys and last.claim is None and last.hours is not None:
        found.append(_filled(LAST, last.offering, last.count, last.hours, fields_of(last), values))
    return found


def address_of(values: QueryDict) -> str:
    """Return the address of the form filled with the values, without what must not be in an address."""
    query = values.copy()
    for name in NOT_IN_ADDRESS:
        query.pop(name, None)
    if sort := query.pop("sort_by", None):
        query["sort"] = sort[-1]
    return f"{reverse('request')}?{query.urlencode()}"


def query_of(values: QueryDict) -> str:
    """Return the fields of a request, as an address has them, without those that are empty."""
    return urlencode([(name, v) for name, found in values.lists() if name not in NOT_OF_REQUEST for v in found if v])


def again_url(row: Allocation) -> str:
    """Return the address of the form filled with what an allocation requested, but for its name, its times, and a
    custom claim.
    """
    return f"{reverse('request')}?{urlencode(fields_of(row), doseq=True)}"


def fields_of(row: Allocation) -> dict[str, list[str]]:
    constraints, sharing = Constraints.from_json(row.constraints), Sharing.from_json(row.sharing)
    threads = sharing.active_thread_percentage
    fields = {
        "project": row.project.slug,
        **_fields_of(row.offering, row.count, row.hours),
        "priority": row.priority,
        "labels": str(Labels.from_json(row.labels)),
        **{each.name: getattr(row, each.name) for each in LABELLED},
        SPREAD: "on" if constraints.spread else "",
        "strategy": sharing.strategy,
        "interval": sharing.interval or "",
        "threads": "" if threads is None else str(threads),
        "pinned": sharing.pinned_memory_limit or "",
    }
    return {name: [value] for name, value in fields.items() if value} | {"constraints": list(constraints.names)}


def _fields(preset: Preset) -> dict[str, list[str]]:
    if preset.query:
        return dict(QueryDict(preset.query).lists())
    return {name: [value] for name, value in _fields_of(preset.offering, preset.count, preset.hours).items()}


def _fields_of(offering: Offering, count: int, hours: Decimal | None) -> dict[str, str]:
    shown = "" if hours is None else amounts.hours(Fraction(hours))
    length = {"length": shown} if shown in LENGTHS else {"length": "custom", "hours": shown} if shown else {}
    return {"offering": offering.key, "count": str(count), **length}


def _filled(
    name: str,
    offering: Offering,
    count: int,
    hours: Decimal,
    fields: Mapping[str, list[str]],
    values: QueryDict,
    preset: Preset | None = None,
) -> FilledForm:
    return FilledForm(
        name=name,
        words=f"{count} × {offerings.name(offering)}, {amounts.hours(Fraction(hours))} h",
        url=f"{reverse('request')}?{urlencode(fields, doseq=True)}",
        is_chosen=all(values.getlist(field) == found for field, found in fields.items() if found),
        id=preset.pk if preset and preset.owner_id else None,
    )
