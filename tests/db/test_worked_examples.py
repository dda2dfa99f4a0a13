"""The ledger beside worked examples that others have published: each test names its source.

- HAMi issue 3073, acceptance: four pods of 25 percent each for an hour are one GPU-hour, and what is charged and what
  is idle add up to the device.
- Lago (lago-api, spec/services/events/stores, ``weighted_sum``): units that come and go, weighted by the seconds
  between events, over the 2,678,400 seconds of March 2023, in UTC.
- Kubecost's documentation, Efficiency and Idle ("Sharing idle"): a cluster of two nodes with six units each.
- AWS's documentation, Split cost allocation data for accelerated instances: the part of an hour of a p3.16xlarge that
  is its GPUs'.
- NVIDIA's MIG User Guide, supported profiles: the parts of an A100's memory and compute that layouts take.
- The IANA time zone database: the last Sunday of March has 23 hours in Berlin, that of October 25.
"""

from collections import defaultdict
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest

from portal.core import clock
from portal.tenants.actors import SYSTEM
from quotas.catalog.models import Flavor, Offering
from quotas.costs import ledger, windows
from quotas.costs import services as costs
from quotas.costs.questions import IdleView
from quotas.costs.rating import Window
from quotas.metering import accounts, balance, parts
from quotas.metering import services as metering
from quotas.metering.models import UsageInterval
from quotas.metering.parts import Category
from quotas.metering.units import GPU, FoundUnit, Unit
from tests.support import cost_answers, hours_by_flavor
from tests.support.capacity import H100, SEEN, always, hold_gpu, offer, record
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.quotas import attribution, hour, used

pytestmark = pytest.mark.django_db
BERLIN = ZoneInfo("Europe/Berlin")
HOUR = Window(hour(0), hour(1))
MARCH = Window(datetime(2023, 3, 1, tzinfo=UTC), datetime(2023, 4, 1, tzinfo=UTC))
UNTIL_NOW = datetime(2027, 1, 1, tzinfo=UTC)
TWO_NODES = {Unit(node, GPU, f"gpu-{n}"): FoundUnit(1, 1) for node in ("h100-0", "h100-1") for n in range(6)}
ONE_GPU = {Unit("h100-0", GPU, "gpu-0"): FoundUnit(1, 1)}


@pytest.fixture(autouse=True)
def catalog(db: None) -> None:
    fleet()


def offer_quarters() -> None:
    """Offer quarters of the h100 in place of whole ones."""
    share = {"gpu_share_numerator": 1, "gpu_share_denominator": 4, "replicas": 4}
    Offering.objects.filter(key="h100/whole").update(kind="shared", **share)
    always(Flavor.objects.get(name="h100"))


def test_four_shares_of_25_percent_for_an_hour_are_charged_and_idle_as_one_device() -> None:
    """HAMi issue 3073."""
    record(ONE_GPU, 0)
    offer_quarters()
    for share in "abcd":
        hold_gpu(f"gpu-0/{share}", 0, 1, gpu_share=Fraction(1, 4))
    hold_gpu("gpu-0/e", 1, 1.5, gpu_share=Fraction(1, 4))
    [first], [second] = (hours_by_flavor.by_flavor(hour(n), hour(n + 1)) for n in (0, 1))
    assert {name: amount for name, amount in first.parts.items() if amount} == {Category.HELD: 1}
    assert {name: amount for name, amount in second.parts.items() if amount} == {
        Category.HELD: Fraction(1, 8),
        Category.IDLE: Fraction(7, 8),
    }
    charged = cost_answers.costs(HOUR, ["flavor"], now=UNTIL_NOW)
    assert (charged.gpu_hours, charged.total) == ("1.000000", "3.2000")


def at(day: int, hours: float = 0) -> datetime:
    return MARCH.start + timedelta(days=day - 1, hours=hours)


def weighted_sum() -> Decimal:
    """Return what Lago calls the weighted sum of March: units times seconds, per second of the month."""
    [found] = ledger.sums([MARCH.start, MARCH.end], [], {}, UNTIL_NOW)
    share = found.usage.gpu_hours / Fraction((MARCH.end - MARCH.start).total_seconds()) * 3600
    return round(Decimal(share.numerator) / share.denominator, 5)


def hold_by_events(day: int) -> None:
    """Hold what these events of Lago's say: +2, after 1 h +3, after 1.5 h +1, after 2 h -4, after 4 h -2, after 5 h
    +10, after 5.5 h -10.
    """
    for start, end, count in ((0, 4, 2), (1, 2, 3), (1.5, 2, 1), (5, 5.5, 10)):
        used(at(day, start), at(day, end), count)


@pytest.mark.parametrize("day", [1, 5])
def test_units_that_come_and_go_are_weighted_by_time(day: int) -> None:
    """Lago: 0.02218 of a unit over the month, on whichever day."""
    hold_by_events(day)
    assert weighted_sum() == Decimal("0.02218")


def test_units_that_were_there_before_the_window_count_from_its_start() -> None:
    """Lago, with an initial value of 1000."""
    used(MARCH.start - timedelta(days=40), None, 1000)
    assert weighted_sum() == 1000
    hold_by_events(1)
    assert weighted_sum() == Decimal("1000.02218")


def test_units_that_stay_count_until_the_end_of_the_window() -> None:
    """Lago: 1000 from the fifth day on, and twice 3 at the same moment, of which 27 of 31 days are in the month."""
    used(at(5), None, 1000)
    assert weighted_sum() == Decimal("870.96774")
    UsageInterval.objects.all().delete()
    used(at(5), None, 3)
    used(at(5), None, 3)
    assert weighted_sum() == Decimal("5.22581")


def test_idle_is_counted_by_node_and_by_cluster() -> None:
    """Kubecost: four workloads on one node and one on the other leave 2 and 5 units idle, 7 of 12 in all."""
    record(TWO_NODES, 0)
    for n in range(4):
        hold_gpu(f"gpu-{n}", 0, 1)
    key, slot = uuid4(), f"{LOCAL}/h100-1/gpu-0"
    metering.open_interval(key, uuid4(), slot, hour(0), attribution(**H100 | {"node": "h100-1"}), 1, SEEN)
    by_node: dict[str, Fraction] = defaultdict(Fraction)
    for of, account in accounts.read(hour(0), hour(1)).items():
        by_node[of.node] += parts.gpu_hours(parts.split(account, hour(0), hour(1)))[Category.IDLE]
    assert by_node == {"h100-0": 2, "h100-1": 5}
    [cluster] = hours_by_flavor.by_flavor(hour(0), hour(1))
    assert (cluster.capacity, cluster.parts[Category.IDLE]) == (Fraction(12), Fraction(7))


def test_gpus_at_the_price_that_is_split_off_their_instance_cost_its_gpu_part_whoever_holds_them() -> None:
    """AWS: 10 dollars an hour for 8 GPUs of weight 9, 64 vCPUs of 0.9 and 488 GB of 0.1 are 0.504 for each GPU."""
    unit = Fraction(10) / (8 * 9 + 64 * Fraction(9, 10) + 488 * Fraction(1, 10))
    price = round(Decimal((9 * unit).numerator) / (9 * unit).denominator, 10)
    assert (round(unit, 3), round(price, 3)) == (Fraction("0.056"), Decimal("0.504"))
    record({Unit("h100-0", GPU, f"gpu-{n}"): FoundUnit(1, 1) for n in range(8)}, 0)
    for n in range(3):
        hold_gpu(f"gpu-{n}", 0, 1)
    with clock.frozen(hour(0)):
        costs.set_price(SYSTEM, "h100", price, "EUR", hour(0))
    [found] = cost_answers.costs(HOUR, ["flavor"], now=UNTIL_NOW, idle=IdleView()).rows
    assert (found.cost, found.idle_cost) == ("1.5135", "2.5224")
    assert round(72 * unit, 4) == Fraction("4.0359") == Fraction("1.5135") + Fraction("2.5224")


SLICES_40GB = {"1g.5gb": (1, 1), "1g.10gb": (1, 2), "2g.10gb": (2, 2), "3g.20gb": (3, 4), "4g.20gb": (4, 4)}
"""Sevenths of the compute and eighths of the memory of an A100 of 40 GB, by profile, as NVIDIA has them."""


@pytest.mark.parametrize(
    ("layout", "compute", "memory", "charged"),
    [
        (["1g.5gb"] * 7, Fraction(1), Fraction(7, 8), Fraction(1)),
        (["3g.20gb"] * 2, Fraction(6, 7), Fraction(1), Fraction(1)),
        (["4g.20gb", "3g.20gb"], Fraction(1), Fraction(1), Fraction(1)),
        (["3g.20gb", "2g.10gb", "2g.10gb"], Fraction(1), Fraction(1), Fraction(1)),
        (["3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb"], Fraction(1), Fraction(1), Fraction(1)),
        (["1g.10gb"] * 4, Fraction(4, 7), Fraction(1), Fraction(1)),
        (["4g.20gb"], Fraction(4, 7), Fraction(1, 2), Fraction(4, 7)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_slices_of_a_layout_are_charged_what_they_deny_others_and_never_more_than_their_gpu(
    layout: list[str], compute: Fraction, memory: Fraction, charged: Fraction
) -> None:
    """NVIDIA: a slice is worth the larger of its parts. 4g and 3g, or 3g and two of 2g, would be 15/14 together."""
    assert sum(Fraction(SLICES_40GB[profile][0], 7) for profile in layout) == compute
    assert sum(Fraction(SLICES_40GB[profile][1], 8) for profile in layout) == memory
    record(ONE_GPU, 0)
    weights = [max(Fraction(SLICES_40GB[name][0], 7), Fraction(SLICES_40GB[name][1], 8)) for name in layout]
    for profile, weight in dict(zip(layout, weights, strict=True)).items():
        offer(profile, weight)
    for n, (profile, weight) in enumerate(zip(layout, weights, strict=True)):
        label = profile.replace(".", "")
        hold_gpu(f"gpu-0-mig-{label}-9-{n}", 0, 1, gpu_share=weight)
    proved = balance.of_hour(LOCAL, hour(0))
    assert not proved.failures
    assert (proved.parts[Category.HELD], proved.capacity) == (charged, Fraction(1))
    [sums] = ledger.sums([HOUR.start, HOUR.end], [], {}, UNTIL_NOW)
    assert sums.usage.priced_cost == charged * Fraction("3.2")


def midnight(day: date) -> datetime:
    return datetime.combine(day, time(), BERLIN)


@pytest.mark.parametrize(
    ("day", "hours"), [(date(2026, 3, 29), 23), (date(2026, 10, 25), 25), (date(2026, 11, 2), 24)], ids=str
)
def test_a_day_in_berlin_has_as_many_gpu_hours_as_it_has_hours(day: date, hours: int) -> None:
    """The IANA time zone database, by way of zoneinfo; a price changes at the midnight before and after."""
    start, end = midnight(day), midnight(day + timedelta(days=1))
    flavor = Flavor.objects.get(name="l40s")
    with clock.frozen(start.astimezone(UTC)):
        costs.set_price(SYSTEM, flavor.name, "2", "EUR", start.astimezone(UTC))
        costs.set_price(SYSTEM, flavor.name, "5", "EUR", end.astimezone(UTC))
    used(start - timedelta(days=2), None)
    text = f"{start.isoformat()},{end.isoformat()}"
    found = cost_answers.costs(windows.parse(text, UNTIL_NOW), ["team"], now=UNTIL_NOW)
    assert (found.gpu_hours, found.total) == (f"{hours}.000000", f"{2 * hours}.0000")


def test_the_days_of_a_year_in_berlin_add_up_to_the_year() -> None:
    """The IANA time zone database: 8,760 hours, although two days are not of 24."""
    edges = [midnight(date(2026, 1, 1) + timedelta(days=n)).astimezone(UTC) for n in range(366)]
    used(edges[0] - timedelta(days=1), None)
    days = ledger.sums(edges, [], {}, UNTIL_NOW)
    assert sorted(each.usage.gpu_hours for each in days) == [23, *[24] * 363, 25]
    assert all(timedelta(hours=int(each.usage.gpu_hours)) == each.window.end - each.window.start for each in days)
    assert [each.window for each in sorted(days, key=lambda each: each.window.start)] == [
        Window(*pair) for pair in pairwise(edges)
    ]
    assert sum(each.usage.gpu_hours for each in days) == 8760
