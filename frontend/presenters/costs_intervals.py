"""The intervals of an allocation or a Job: what each is charged, and what shows that it was held."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.core.paginator import Paginator
from django.urls import reverse
from django.utils import timezone

from allocations.queues import jobs
from allocations.requests import selectors
from frontend.presenters.costs_address import REST, CostsAddress, curl
from frontend.presenters.costs_filters import narrowed
from portal.core import clock, money
from portal.tenants import access
from portal.tenants.models import User
from quotas.costs.calendar import ONE_DAY
from quotas.costs.filters import EVERYTHING
from quotas.costs.holder_costs import ChargedInterval, HolderCosts

PAGE_ROWS = 100


@dataclass(frozen=True)
class IntervalLine:
    """An interval; ``evidence`` are its bounds with the objects that showed them, ``notes`` what is unusual."""

    interval: ChargedInterval
    gpu_hours: Decimal
    cost: Decimal | None
    where: str
    evidence: Sequence[tuple[str, str]]
    notes: Sequence[str]


def intervals_page(user: User, id_: UUID, found: HolderCosts, page: str) -> dict[str, Any]:
    """Return what the page of an allocation's costs shows."""
    name, url = _name_and_url(user, id_)
    rows = [one.row for one in found.intervals]
    context: dict[str, Any] = {
        "name": name,
        "url": url,
        "lines": Paginator([_line(one) for one in found.intervals], PAGE_ROWS).get_page(page),
        "first": rows[0] if rows else None,
        "currency": found.currency,
        "gpu_hours": money.text(found.charge.reserved, money.HOURS_PLACES),
        "cost": None if found.charge.cost is None else money.text(found.charge.cost),
        "unused": found.unused,
        "curl": curl(f"{REST}/allocations/{id_}"),
        "by_day": "",
    }
    if rows:
        address = CostsAddress(_question(id_, rows[0].start, max(row.end or clock.now() for row in rows)))
        context |= {"by_day": address.page(), "csv": address.rest("/export", accumulate="day")}
    return context


def _question(id_: UUID, start: datetime, end: datetime) -> dict[str, str]:
    first, after = timezone.localtime(start), timezone.localtime(end) + ONE_DAY
    return {
        "window": f"{first:%Y-%m-%d},{after:%Y-%m-%d}",
        "timezone": timezone.get_current_timezone_name(),
        "aggregate": "allocation",
        "filter": narrowed(EVERYTHING, [("allocation", str(id_))]),
        "accumulate": "day",
    }


def _name_and_url(user: User, id_: UUID) -> tuple[str, str]:
    if row := selectors.visible(user).filter(pk=id_).first():
        return f"{row.project.slug} / {row.name}", reverse("allocation", args=[id_])
    for one in jobs.read(jobs.rows(access.visible_projects(user)).filter(facts__job__uid=str(id_))):
        return f"{one.project.slug} / Job {one.name}", reverse("job", args=[id_])
    return f"Job {id_}, deleted", ""


def _line(one: ChargedInterval) -> IntervalLine:
    row = one.row
    places = [row.cluster_id, row.node, row.device, one.device_uuid]
    evidence = [("Start", _words(row.source_start, row.estimated_start))]
    if row.end is not None:
        evidence.append(("End", _words(row.source_end or {}, row.estimated_end)))
    notes = [
        "Reserved for a queued Job, but used by none of its pods." if row.unused else "",
        "Held past its end, because the portal ended it late." if row.overtime else "",
        "Not charged." if row.uncharged else "",
    ]
    return IntervalLine(
        interval=one,
        gpu_hours=round(one.gpu_hours, 2),
        cost=None if one.cost is None else round(one.cost, 2),
        where=" / ".join(part for part in places if part),
        evidence=evidence,
        notes=[note for note in notes if note],
    )


def _words(source: Mapping[str, Any], is_estimated: bool) -> str:
    """Return ``ResourceClaim vision-train/train, resourceVersion 4711``."""
    name = "/".join(str(source[key]) for key in ("namespace", "name") if source.get(key))
    words = " ".join(part for part in (str(source.get("kind", "")), name) if part)
    if version := source.get("resource_version"):
        words += f", resourceVersion {version}"
    return f"{words}, estimated" if is_estimated else words
