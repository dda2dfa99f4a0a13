"""What could be saved, by kind, with its money and the ways to act on it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.urls import reverse

from allocations.models import Allocation
from frontend.presenters import amounts
from portal.core import money
from portal.tenants.access import Permissions
from quotas.costs import savings_rules
from quotas.costs.rating import RatedUsage
from quotas.costs.savings import Savings
from quotas.costs.savings_rules import Saving, SavingKind

HOURS_PLACES = 2
UNKNOWN = "not known yet"
WORDS = {
    SavingKind.IDLE_HOLD: (
        "Holds without pods",
        "Held now, but no pod has run for some hours. Release what is not needed.",
    ),
    SavingKind.QUIET_HOURS: (
        "Held at night and on weekends without pods",
        "Held from 20:00 to 06:00 or on a Saturday or Sunday while no pod ran. Request shorter holds, or queue the "
        "work as Jobs. Holds without pods now are not counted again.",
    ),
    SavingKind.UNUSED_QUOTA: (
        "Unused guaranteed quota",
        "The team held nothing of the flavor in this period, and GPUs were idle for it. Lower the quota, or lend it.",
    ),
    SavingKind.STRANDED: (
        "Stranded GPUs",
        "Free parts of GPUs into which no offered slice fits. Offer a slice that fits, or move workloads beside them.",
    ),
    SavingKind.UNPRICED: (
        "Offerings without a price",
        "Their use has no cost and is missing from reports. Set a price.",
    ),
}


@dataclass(frozen=True)
class Link:
    text: str
    url: str


@dataclass(frozen=True)
class SavingLine:
    """A saving; ``subject`` links to the thing and ``owner`` to whose it is, "" where nobody may follow it. ``release``
    is the address of the question whether to release it, for who may.
    """

    subject: Link
    owner: Link
    detail: str
    since: datetime | None
    gpu_hours: str
    cost: str
    per_hour: str
    release: str = ""


@dataclass(frozen=True)
class SavingGroup:
    """The savings of a kind, and what they add up to."""

    kind: str
    title: str
    advice: str
    lines: Sequence[SavingLine]
    gpu_hours: str
    cost: str
    has_rate: bool


def groups(found: Savings, rows: Iterable[Allocation], may: Permissions, job_ids: Iterable[UUID]) -> list[SavingGroup]:
    """Return the kinds of which there is something; ``rows`` are the allocations that hold something idle."""
    by_id, jobs = {row.pk: row for row in rows}, set(job_ids)
    sums = savings_rules.totals(found.found)
    return [
        _group(kind, lines, sums, found.currency)
        for kind in SavingKind
        if (lines := [_line(one, found.currency, by_id, may, jobs) for one in found.found if one.kind is kind])
    ]


def _group(
    kind: SavingKind, lines: Sequence[SavingLine], sums: Mapping[SavingKind, RatedUsage], currency: str
) -> SavingGroup:
    title, advice = WORDS[kind]
    total = sums.get(kind, RatedUsage())
    return SavingGroup(
        kind=kind.value,
        title=title,
        advice=advice,
        lines=lines,
        gpu_hours=_hours(total),
        cost=amounts.money(total.cost, currency) if kind in sums else UNKNOWN,
        has_rate=any(line.per_hour for line in lines),
    )


def _line(
    one: Saving, currency: str, rows: Mapping[UUID, Allocation], may: Permissions, jobs: Iterable[UUID]
) -> SavingLine:
    row = rows.get(one.holder_id) if one.holder_id else None
    can_release = row is not None and may.can("allocation.release", row.project.team_id, row.requested_by_id)
    return SavingLine(
        subject=_subject(one, row, jobs),
        owner=Link(one.team, reverse("team", args=[one.team]) if one.team else ""),
        detail=_detail(one),
        since=one.since,
        gpu_hours=UNKNOWN if one.usage is None else _hours(one.usage),
        cost=UNKNOWN if one.usage is None else _cost(one.usage, currency),
        per_hour="" if one.per_hour is None else amounts.money(one.per_hour, currency),
        release=reverse("release", args=[row.pk]) if row and can_release and row.desired == row.Desired.HELD else "",
    )


def _subject(one: Saving, row: Allocation | None, jobs: Iterable[UUID]) -> Link:
    if row is not None:
        return Link(f"{one.project} / {row.name}", reverse("allocation", args=[row.pk]))
    if one.holder_id is not None:
        is_known = one.holder_id in jobs
        return Link(f"{one.project} / Job {one.holder_id}", reverse("job", args=[one.holder_id]) if is_known else "")
    if one.project:
        return Link(one.project, reverse("project", args=[one.project]))
    return Link(one.offering or one.flavor, "")


def _detail(one: Saving) -> str:
    if one.kind is SavingKind.STRANDED:
        return "; ".join(
            f"{money.text(layout.gpus, HOURS_PLACES)} GPUs now, on {layout.gpu_count}: "
            + (f"a {layout.profile} would fit" if layout.profile else "no slice fits")
            for layout in one.layouts
        )
    return " · ".join(filter(None, (one.offering, one.member))) if one.project else ""


def _cost(usage: RatedUsage, currency: str) -> str:
    if not usage.gpu_hours:
        return "–"
    left_out = amounts.left_out(usage.unpriced_gpu_hours) if usage.cost is not None else ""
    return ", ".join(filter(None, (amounts.money(usage.cost, currency), left_out)))


def _hours(usage: RatedUsage) -> str:
    return money.text(usage.gpu_hours, HOURS_PLACES)
