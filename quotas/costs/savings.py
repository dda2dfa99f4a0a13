"""What could be saved of what a person may see, with its money; a fixed number of queries."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from uuid import UUID

from django.db.models import Q

from portal.core.errors import Invalid
from quotas.catalog.models import Offering
from quotas.costs import fleet_costs, idle_holds, ledger, quiet_hours, rates, rating, savings_rules, selectors
from quotas.costs.fleet_costs import FleetCosts
from quotas.costs.questions import Question
from quotas.costs.rates import PriceList
from quotas.costs.rating import RatedUsage, Window
from quotas.costs.savings_rules import Layout, QuotaStep, Saving, SavingKind
from quotas.limits.models import QuotaChange
from quotas.metering import charged_intervals, stranded_gpus, stranding
from quotas.metering.charged_intervals import Charged
from quotas.metering.hours import DAY
from quotas.metering.models import UsageInterval
from quotas.metering.parts import Category
from quotas.metering.rolled_up import Detail
from quotas.metering.stranding import StrandedGpu

IDLE_HOURS, MAX_IDLE_HOURS = 4, 720
MAX_DAYS = 92


@dataclass(frozen=True)
class Savings:
    """Savings by kind, highest cost first, in the time of the window until now."""

    window: Window
    currency: str
    found: Sequence[Saving]


def possible_savings(question: Question, idle_hours: int = IDLE_HOURS) -> Savings:
    """Return what could be saved of what may be seen, without a filter, and of the fleet for who sees all.

    Raises Invalid for a window of more than MAX_DAYS, and for less than one hour or more than MAX_IDLE_HOURS.
    """
    window, now = question.window, question.now
    if window.end - window.start > MAX_DAYS * DAY:
        raise Invalid({"window": [f"Choose at most {MAX_DAYS} days."]})
    if not 1 <= idle_hours <= MAX_IDLE_HOURS:
        raise Invalid({"idle_hours": [f"Give 1 to {MAX_IDLE_HOURS} hours."]})
    prices, edges = rates.read(), [window.start, window.end]
    sums = ledger.sums(edges, ("cluster", "flavor", "offering", "team"), question.scope, now)
    fleet = fleet_costs.read(edges, now, Detail.OWNER)
    idle = list(_idle_holds(question, prices, timedelta(hours=idle_hours)))
    found = [
        *idle,
        *_quiet_hours(question, prices, {one.holder_id: one.since for one in idle if one.holder_id and one.since}),
        *_unused_quotas(question, fleet, sums),
        *_unpriced(sums, prices, offered=_offered() if question.sees_all else (), now=now),
        *(_stranded(fleet, prices, now) if question.sees_all else ()),
    ]
    return Savings(window, selectors.currency(), savings_rules.ordered(found))


def _idle_holds(question: Question, prices: PriceList, least: timedelta) -> Iterator[Saving]:
    """Yield the holds without any pod; four queries at most."""
    rows = UsageInterval.objects.filter(Q(unused=True) | ~Q(member=""), end=None, start__lte=question.now)
    if question.teams is not None:
        rows = rows.filter(team__in=question.teams)
    holds: dict[UUID, list[UsageInterval]] = defaultdict(list)
    for row in rows.order_by("start", "slot"):
        holds[row.holder_id].append(row)
    idle = idle_holds.since({holder: of_holder[0].start for holder, of_holder in holds.items()})
    since = {holder: at for holder, at in idle.items() if question.now - at >= least}
    charged: dict[UUID, list[Charged[UsageInterval]]] = defaultdict(list)
    for one in charged_intervals.until([row for holder in since for row in holds[holder]], question.now):
        charged[one.row.holder_id].append(one)
    for holder, at in since.items():
        first = holds[holder][0]
        passed = Window(max(at, question.passed.start), question.passed.end)
        usages = [selectors.usage_of(one) for one in charged[holder]]
        usage = rating.rated_usage(usages, prices.rates, passed, question.now, prices.lists)
        if usage.gpu_hours:
            yield Saving(
                SavingKind.IDLE_HOLD,
                cluster=first.cluster_id,
                flavor=first.flavor,
                usage=usage,
                offering=first.offering,
                team=first.team,
                project=first.project,
                member=first.member,
                holder_id=holder,
                since=at,
                per_hour=_per_hour(charged[holder], prices, question.now),
            )


def _per_hour(charged: Iterable[Charged[UsageInterval]], prices: PriceList, now: datetime) -> Fraction | None:
    """Return what is charged for an hour at the prices of now; None if nothing of it has one."""
    found = []
    for usage in map(selectors.usage_of, charged):
        if usage.end is None or usage.end >= now:
            listed = prices.lists.get(usage.offering, ())
            of_slice = rating.slice_rates(prices.rates.get(usage.flavor, ()), listed, usage.slice_share)
            price = rating.rate_at(of_slice if usage.is_charged else rating.FREE, now)
            found += [] if price is None else [usage.gpus * price]
    return sum(found, Fraction(0)) if found else None


def _quiet_hours(question: Question, prices: PriceList, idle: dict[UUID, datetime]) -> Iterator[Saving]:
    quiet_times = savings_rules.quiet_times(question.passed, question.calendar)
    spans = savings_rules.cut(quiet_times, quiet_hours.price_moments(prices))
    found = quiet_hours.without_pods(spans, question.teams, prices, idle)
    by_project: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for key, usage in found.items():
        by_project[key.team, key.project] += usage.gpu_hours
    for key, usage in found.items():
        if usage.gpu_hours and by_project[key.team, key.project] >= savings_rules.MIN_GPU_HOURS:
            yield Saving(SavingKind.QUIET_HOURS, usage=usage, **key._asdict())


def _unused_quotas(question: Question, fleet: FleetCosts | None, sums: Iterable[ledger.Sum]) -> Iterator[Saving]:
    """Yield the quotas of which nothing was held, with what of the idle GPUs was theirs; one query."""
    rows = QuotaChange.objects.filter(team__isnull=False, at__lt=question.passed.end).order_by("at", "id")
    if question.teams is not None:
        rows = rows.filter(team__slug__in=question.teams)
    columns = ("at", "team__slug", "pool__flavor__cluster", "pool__flavor__name", "pool__key", "nominal")
    steps = (QuotaStep(*values) for values in rows.values_list(*columns))
    held = {(team, cluster, flavor) for cluster, flavor, _, team in (one.names for one in sums)}
    idle: dict[tuple[str, str, str], RatedUsage] = defaultdict(RatedUsage)
    for part in fleet.parts if fleet else ():
        if part.category is Category.IDLE:
            idle[part.team, part.cluster, part.flavor] += fleet_costs.usage(part)
    for team, cluster, flavor in savings_rules.unused_quotas(steps, held, question.passed):
        usage = idle[team, cluster, flavor] if fleet else None
        if usage is None or usage.gpu_hours:
            yield Saving(SavingKind.UNUSED_QUOTA, cluster=cluster, flavor=flavor, usage=usage, team=team)


def _unpriced(
    sums: Iterable[ledger.Sum], prices: PriceList, offered: Iterable[Offering], now: datetime
) -> Iterator[Saving]:
    """Yield the offerings that were used without a price, and those offered that have none now."""
    hours: dict[tuple[str, str, str], RatedUsage] = defaultdict(RatedUsage)
    for one in sums:
        if one.unpriced:
            unpriced = one.usage.unpriced_gpu_hours
            hours[one.names[:3]] += RatedUsage(unpriced, unpriced)  # type: ignore[index]  # of four names
    listed = list(offered)
    priced = selectors.slice_prices(listed, prices, now)
    for row in listed:
        if row.key not in priced:
            hours[row.flavor.cluster_id, row.flavor.name, row.key] += RatedUsage()
    for (cluster, flavor, offering), usage in hours.items():
        yield Saving(SavingKind.UNPRICED, cluster=cluster, flavor=flavor, usage=usage, offering=offering)


def _offered() -> Iterable[Offering]:
    return Offering.objects.filter(hidden=False, flavor__accepted=True).select_related("flavor")


def _stranded(fleet: FleetCosts | None, prices: PriceList, now: datetime) -> Iterator[Saving]:
    """Yield by flavor what was stranded, and the slices that would fit what is stranded now."""
    sums: dict[str, RatedUsage] = defaultdict(RatedUsage)
    clusters: dict[str, str] = {}
    for part in fleet.parts if fleet else ():
        if part.category is Category.STRANDED:
            sums[part.flavor] += fleet_costs.usage(part)
            clusters[part.flavor] = part.cluster
    layouts: dict[str, list[Layout]] = defaultdict(list)
    on: dict[str, list[StrandedGpu]] = defaultdict(list)
    for gpu in (found := stranded_gpus.each()):
        on[gpu.flavor].append(gpu)
    for one in stranding.by_profile(found):
        layouts[one.flavor].append(Layout(one.profile, one.gpus, one.count))
    for flavor in sorted({*sums, *layouts}):
        price = rating.rate_at(prices.rates.get(flavor, ()), now)
        gpus = sum((one.gpus for one in layouts.get(flavor, ())), Fraction(0))
        yield Saving(
            SavingKind.STRANDED,
            cluster=clusters.get(flavor, ""),
            flavor=flavor,
            usage=sums[flavor] if fleet else None,
            per_hour=None if price is None else gpus * price,
            layouts=layouts.get(flavor, ()),
            gpus=on.get(flavor, ()),
        )
