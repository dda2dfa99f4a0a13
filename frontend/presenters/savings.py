"""What could be saved, by kind, with its money and the ways to act on it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse

from allocations.models import Allocation
from frontend.presenters import amounts
from frontend.presenters.costs_address import CostsAddress
from frontend.presenters.costs_filters import costs_of
from frontend.presenters.stranded import StrandedLine, stranded_lines
from portal.tenants.access import Permissions
from quotas.costs import savings_rules
from quotas.costs.rating import RatedUsage
from quotas.costs.savings import Savings
from quotas.costs.savings_rules import Saving, SavingKind

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
        "Their use has no cost and is missing from reports. Platform operators set prices.",
    ),
}


@dataclass(frozen=True)
class Link:
    """``url`` is empty where the reader may not follow it."""

    text: str
    url: str = ""


@dataclass(frozen=True)
class Reader:
    """What the links of a reader depend on: the window and time zone of the page, the reader's permissions, the
    allocations and the names of Jobs that hold something idle and that the reader sees, and the nodes, as (cluster,
    name), whose pages the reader can open.
    """

    address: Mapping[str, str]
    may: Permissions
    rows: Mapping[UUID, Allocation]
    jobs: Mapping[UUID, str]
    nodes: Collection[tuple[str, str]] = ()
    may_set_prices: bool = False

    def costs_url(self, key: str, value: str, by: str = "allocation") -> str:
        """Return the address of what the costs of a value are made of; empty without a value, and if no filter can
        name it.
        """
        return costs_of(CostsAddress(self.address), [(key, value)], by) if value else ""


@dataclass(frozen=True)
class SavingLine:
    """A saving; ``subject`` links to the thing, ``owner`` to whose it is and ``member`` to what the person costs.
    ``release`` is the address of the question whether to release it, for who may, and ``set_price`` of the form.
    """

    subject: Link
    owner: Link
    member: Link
    detail: str
    since: datetime | None
    gpu_hours: str
    cost: str
    per_hour: str
    release: str = ""
    set_price: str = ""
    stranded: Sequence[StrandedLine] = ()
    more_stranded: int = 0


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
    has_release: bool
    can_set_price: bool


def groups(found: Savings, reader: Reader) -> list[SavingGroup]:
    """Return the kinds of which there is something."""
    sums = savings_rules.totals(found.found)
    return [
        _group(kind, lines, sums, found.currency)
        for kind in SavingKind
        if (lines := [_line(one, found.currency, reader) for one in found.found if one.kind is kind])
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
        has_release=any(line.release for line in lines),
        can_set_price=any(line.set_price for line in lines),
    )


def _line(one: Saving, currency: str, reader: Reader) -> SavingLine:
    row = reader.rows.get(one.holder_id) if one.holder_id else None
    can_release = row is not None and reader.may.can("allocation.release", row.project.team_id, row.requested_by_id)
    is_unpriced = one.kind is SavingKind.UNPRICED
    shown, more = stranded_lines(one.gpus, reader.nodes)
    return SavingLine(
        subject=_subject(one, row, reader),
        owner=Link(one.team, reverse("team", args=[one.team]) if one.team else ""),
        member=Link(one.member, reader.costs_url("member", one.member)),
        detail=_detail(one),
        since=one.since,
        gpu_hours=UNKNOWN if one.usage is None else _hours(one.usage),
        cost=UNKNOWN if one.usage is None else _cost(one.usage, currency),
        per_hour="" if one.per_hour is None else amounts.rate(one.per_hour, currency),
        release=reverse("release", args=[row.pk]) if row and can_release and row.desired == row.Desired.HELD else "",
        set_price=_price_url(one.flavor) if is_unpriced and reader.may_set_prices else "",
        stranded=shown,
        more_stranded=more,
    )


def _subject(one: Saving, row: Allocation | None, reader: Reader) -> Link:
    if row is not None:
        return Link(f"{one.project} / {row.name}", reverse("allocation", args=[row.pk]))
    if one.holder_id is not None:
        if job := reader.jobs.get(one.holder_id):
            return Link(f"{one.project} / Job {job}", reverse("job", args=[one.holder_id]))
        name = f"Allocation {one.holder_id}" if one.member else f"Job {one.holder_id}, deleted"
        return Link(f"{one.project} / {name}", reverse("costs-allocation", args=[one.holder_id]))
    if one.project:
        return Link(one.project, reader.costs_url("project", one.project))
    if one.offering:
        is_used = one.usage is not None and one.usage.gpu_hours
        return Link(one.offering, reader.costs_url("offering", one.offering, "project") if is_used else "")
    return Link(one.flavor, _assets_url(one.flavor, reader) if one.kind is SavingKind.STRANDED else "")


def _assets_url(flavor: str, reader: Reader) -> str:
    return f"{reverse('cost-assets')}?{urlencode({'window': reader.address['window'], 'flavor': flavor})}"


def _price_url(flavor: str) -> str:
    return f"{reverse('set-price')}?{urlencode({'of': f'flavor:{flavor}'})}"


def _detail(one: Saving) -> str:
    if one.kind is SavingKind.STRANDED:
        return "; ".join(
            f"{amounts.number(layout.gpus)} GPUs now, on {layout.gpu_count}: "
            + (f"a {layout.profile} would fit" if layout.profile else "no slice fits")
            for layout in one.layouts
        )
    return one.offering if one.project else ""


def _cost(usage: RatedUsage, currency: str) -> str:
    if not usage.gpu_hours:
        return "–"
    left_out = amounts.left_out(usage.unpriced_gpu_hours) if usage.cost is not None else ""
    return ", ".join(filter(None, (amounts.money(usage.cost, currency), left_out)))


def _hours(usage: RatedUsage) -> str:
    return amounts.number(usage.gpu_hours)
