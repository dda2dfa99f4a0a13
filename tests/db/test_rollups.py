"""Roll-ups: what they have of an hour and a day, and that costs are the same with and without them."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from django.db.models import Model
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from portal.core import clock
from portal.tenants.actors import SYSTEM
from quotas.costs import fleet_costs, ledger, rollups, services
from quotas.costs.filters import UNALLOCATED
from quotas.costs.models import Price
from quotas.costs.rating import Window
from quotas.metering import accounts, foreign, overtime, parts
from quotas.metering import services as metering
from quotas.metering.foreign import Start, Use
from quotas.metering.hours import HOUR
from quotas.metering.models import (
    AccountHour,
    CapacityInterval,
    Correction,
    DayTotal,
    DirtyHour,
    ForeignUse,
    HourTotal,
    RolledUpHour,
    UsageInterval,
)
from quotas.metering.parts import Category
from quotas.metering.units import GPU, RESOURCE, FoundUnit, Unit
from tests.support import cost_answers, costs_by_moment, shares_by_moment
from tests.support.capacity import GPUS, RESOURCES, SEEN, hold_gpu, hold_pod, record, use_gpu_without_allocation
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.quotas import T0, attribution, hour, used
from tests.support.shares_by_moment import Piece
from tests.support.week.bill import Amount

pytestmark = pytest.mark.django_db
HOURS, SHORT = 30, 6
ROLLUPS = (AccountHour, HourTotal, DayTotal, RolledUpHour, DirtyHour)
RANDOM_LEDGERS = settings(
    max_examples=5,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a smaller seed is no simpler ledger
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(autouse=True)
def catalog(db: None) -> None:
    fleet()


def set_price(amount: str, at: float, flavor: str = "l40s") -> Price:
    with clock.frozen(hour(at)):
        return services.set_price(SYSTEM, flavor, amount, "EUR", hour(at), "test")


def amounts(model: Any = HourTotal, *names: str) -> dict[tuple[Any, ...], Fraction]:
    """Return GPU-hours by category and these columns."""
    found: dict[tuple[Any, ...], Fraction] = defaultdict(Fraction)
    for row in model.objects.all():
        key = (row.category, *(getattr(row, name) for name in names))
        found[key] += Fraction(row.amount) / Fraction(row.denominator) / parts.MICROSECONDS_PER_HOUR
    return {key: amount for key, amount in found.items() if amount}


def roll_up(start: int, end: int) -> None:
    rollups.roll_up(LOCAL, hour(start), hour(end))


def test_an_hour_has_what_was_held_and_what_was_idle() -> None:
    record(RESOURCES, 0)
    used(hour(0.5), hour(3), 3)
    roll_up(0, 1)
    held = Fraction(3, 2)
    assert amounts() == {("held",): held, ("idle",): 8 - held}
    assert amounts(AccountHour, "name", "member") == {
        ("held", "nvidia.com/gpu", "ada"): held,
        ("idle", "nvidia.com/gpu", ""): 8 - held,
    }


def test_a_price_that_changes_within_an_hour_makes_two_rows() -> None:
    Price.objects.all().delete()
    set_price("1.5", 0)
    set_price("2.25", 0.25)
    used(hour(0), hour(1), 2)
    roll_up(0, 1)
    found = HourTotal.objects.filter(category="held").values_list("price", "denominator", "amount")
    assert set(found) == {
        (Decimal("1.5"), Decimal(1), Decimal(2 * 900_000_000)),
        (Decimal("2.25"), Decimal(1), Decimal(2 * 2_700_000_000)),
    }


def test_amounts_stay_whole_however_odd_the_shares() -> None:
    """Denominators of 31 bits that share no divisor: what is left has one of 93 bits."""
    record({Unit("h100-0", GPU, "gpu-0"): FoundUnit(1, 1)}, 0)
    odd = (2**31 - 1, 2**31 - 19, 2**31 - 61)
    for number, denominator in enumerate(odd):
        hold_gpu(f"gpu-0/{number}", 0, 1, gpu_share=Fraction(1, denominator))
    roll_up(0, 1)
    assert amounts()["idle",] + amounts()["held",] == 1
    assert amounts()["held",] == sum(Fraction(1, each) for each in odd)


def test_what_is_unmanaged_has_its_namespace() -> None:
    record(GPUS, 0)
    use_gpu_without_allocation("gpu-1", 0, 0.5)
    roll_up(0, 1)
    assert amounts(AccountHour, "namespace", "node")["unmanaged", "elsewhere", "h100-0"] == Fraction(1, 2)


def test_a_day_is_added_up_once_all_its_hours_are_rolled_up() -> None:
    record(RESOURCES, 0)
    used(hour(1), hour(30), 2)
    roll_up(0, 23)
    assert not DayTotal.objects.exists()
    roll_up(23, 26)
    assert {row.start for row in DayTotal.objects.all()} == {T0}
    assert amounts(DayTotal) == {("held",): 46, ("idle",): 8 * 24 - 46}


def test_rolling_up_once_more_changes_nothing() -> None:
    record({**RESOURCES, **GPUS}, 0)
    used(hour(0.3), None, 2)
    hold_gpu("gpu-0", 0.1, 7)
    roll_up(0, 24)
    before = content()
    roll_up(0, 24)
    roll_up(5, 6)
    assert content() == before


def content() -> list[list[tuple[Any, ...]]]:
    """Return all rows of the roll-ups without their own keys."""
    found = []
    for model in (AccountHour, HourTotal, DayTotal):
        columns = [field.attname for field in model._meta.concrete_fields if field.attname != "id"]
        found.append(sorted(model.objects.order_by().values_list(*columns), key=repr))
    return found


def empty(*models: type[Model]) -> None:
    for model in models:
        model._default_manager.all().delete()


class Fleet:
    """A ledger with random capacity, holds, foreign use and prices over HOURS hours."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        empty(*ROLLUPS, Correction, UsageInterval, CapacityInterval, ForeignUse, Price)
        for flavor in ("l40s", "h100"):
            for at in sorted(self.random.sample(range(-2, HOURS * 2), self.random.randrange(4))):
                set_price(f"{self.random.random():.10f}", at / 2 + self.random.random() / 2, flavor)

    def moment(self) -> datetime:
        if self.random.random() < 0.3:
            return hour(self.random.randrange(HOURS))
        return T0 + timedelta(microseconds=self.random.randrange(HOURS * 3_600_000_000))

    def span(self) -> tuple[datetime, datetime]:
        start, end = sorted((self.moment(), self.moment()))
        return start, end

    def labels(self) -> dict[str, str]:
        return self.random.choice([{}, {"app": "train"}, {"app": "serve", "example.com/stage": "prod"}])

    def events(self) -> list[Any]:
        """Return functions that record one thing each."""
        found: list[Any] = [self._capacity, self._capacity, self._capacity]
        found += [self._hold for _ in range(self.random.randrange(8))]
        found += [self._gpu_hold for _ in range(self.random.randrange(6))]
        found += [self._pod_hold for _ in range(self.random.randrange(3))]
        found += [self._foreign for _ in range(self.random.randrange(4))]
        self.random.shuffle(found)
        return found

    def _capacity(self) -> None:
        at = (self.moment() - T0) / HOUR
        down = FoundUnit(1, 0, "node_not_ready")
        record(self.random.choice([RESOURCES, GPUS, dict.fromkeys(GPUS, down)]), at)

    def _hold(self) -> None:
        start, end = self.span()
        share = Fraction(1, self.random.randrange(1, 8))
        values: dict[str, Any] = {
            "gpu_share": share,
            "team": self.random.choice(["vision", "language"]),
            "member": self.random.choice(["ada", "ben", ""]),
            "flavor": self.random.choice(["l40s", "unpriced"]),
            "labels": self.labels(),
        }
        row = used(start, self.random.choice([end, None]), self.random.randrange(1, 5), **values)
        if self.random.random() < 0.3:
            overtime.record(row.holder_id, self.moment(), SEEN, charged=False)

    def _gpu_hold(self) -> None:
        start, end = self.span()
        slot = f"{LOCAL}/h100-0/gpu-{self.random.randrange(2)}/{uuid4()}"
        values = {
            "offering": "h100/whole",
            "flavor": "h100",
            "node": "h100-0",
            "gpu_share": self.random.choice([Fraction(1, 3), Fraction(1, 2), Fraction(4, 7)]),
            "team": self.random.choice(["vision", "language"]),
            "labels": self.labels(),
        }
        row = metering.open_interval(uuid4(), uuid4(), slot, start, attribution(**values), 1, SEEN)
        if self.random.random() < 0.8:
            metering.close_interval(row.key, end, SEEN)

    def _pod_hold(self) -> None:
        start, end = self.span()
        row = hold_pod("l40s-1", (start - T0) / HOUR, None, labels=self.labels())
        if self.random.random() < 0.8:
            metering.close_interval(row.key, end, SEEN)

    def _foreign(self) -> None:
        start, end = self.span()
        slot, uid = f"{LOCAL}/pod:{uuid4()}/nvidia.com/gpu", str(uuid4())
        use = Use(slot, "l40s-0", RESOURCE, "nvidia.com/gpu", 1, "Pod", "trainer", uid, "elsewhere")
        foreign.begin(LOCAL, [Start(use, start, 1, estimated=False)])
        foreign.end(LOCAL, uid, [slot], end, 2, estimated=False)


KEY_SETS: Sequence[tuple[Sequence[str], dict[str, list[str]]]] = [
    ((), {}),
    (("team", "flavor"), {}),
    (("member",), {}),
    (("project",), {"team": ["vision"]}),
    (("team",), {"member": ["ada", "ben"]}),
    (("allocation", "kind", "node", "namespace", "cluster"), {}),
    (("label:app",), {}),
    (("label:example.com/stage", "flavor"), {"label:app": ["serve"]}),
]
BY_NODE = ("cluster", "flavor", "node")


@RANDOM_LEDGERS
@given(seed=st.integers(0, 2**32))
def test_costs_are_the_same_to_the_last_digit_whatever_is_rolled_up(seed: int) -> None:
    made = Fleet(seed)
    random, events = made.random, made.events()
    for event in events[::2]:
        event()
    for _ in range(3):
        start, end = sorted((random.randrange(HOURS), random.randrange(HOURS)))
        roll_up(start, end + 1)
    for event in events[1::2]:
        event()
    now = made.moment()
    windows = [sorted({made.moment() for _ in range(4)}), [hour(0), hour(24), hour(30)]]
    for edges in windows:
        for keys, where in KEY_SETS:
            sums = ledger.sums(edges, keys, where, now)
            found = {(one.window, one.names): costs_by_moment.of_sum(one) for one in sums}
            assert found == by_second_calculation(edges, keys, where, now), (keys, where)


def by_second_calculation(edges: Any, keys: Any, where: Any, now: datetime) -> dict[Any, Amount]:
    """Return what ``ledger.sums`` should, from the intervals alone."""

    def value(row: UsageInterval, key: str) -> str:
        if key.startswith("label:"):
            return row.labels.get(key.removeprefix("label:"), "")
        return (
            str(row.holder_id) if key == "allocation" else str(getattr(row, "cluster_id" if key == "cluster" else key))
        )

    groups: dict[tuple[str, ...], list[Piece]] = defaultdict(list)
    for piece in shares_by_moment.pieces(now):
        if all(value(piece[0], key) in values for key, values in where.items()):
            names = tuple(value(piece[0], key) or UNALLOCATED for key in keys)
            groups[names].append(piece)
    prices = costs_by_moment.prices()
    amounts = {
        (Window(start, end), names): costs_by_moment.amount(pieces, prices, start, min(end, now))
        for start, end in pairwise(edges)
        for names, pieces in groups.items()
    }
    return {group: amount for group, amount in amounts.items() if amount.hours}


@RANDOM_LEDGERS
@given(seed=st.integers(0, 2**32))
def test_roll_ups_have_the_parts_of_the_accounts(seed: int) -> None:
    for event in Fleet(seed).events():
        event()
    roll_up(0, HOURS)
    for model, end in ((AccountHour, HOURS), (HourTotal, HOURS), (DayTotal, 24)):
        assert amounts(model, "flavor") == of_accounts(end)


def of_accounts(end: int) -> dict[tuple[str, str], Fraction]:
    """Return the GPU-hours until ``end`` by category and flavor, split once over the whole time."""
    found: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for key, account in accounts.read(hour(0), hour(end)).items():
        for category, amount in parts.gpu_hours(parts.split(account, hour(0), hour(end))).items():
            found[category.value, key.flavor] += amount
    return {key: amount for key, amount in found.items() if amount}


@RANDOM_LEDGERS
@given(seed=st.integers(0, 2**32))
def test_what_nobody_holds_is_the_same_by_node_whatever_is_rolled_up(seed: int) -> None:
    made = Fleet(seed)
    for event in made.events():
        event()
    expected = of_nodes()
    assert not_held(BY_NODE) == expected
    roll_up(*sorted((made.random.randrange(HOURS), HOURS)))
    assert not_held(BY_NODE) == expected
    assert not_held(BY_NODE[:2]) == without_nodes(expected)


NotHeld = dict[tuple[tuple[str, ...], str], Fraction]
"""GPU-hours by names and category."""


def not_held(keys: Sequence[str]) -> NotHeld:
    question = cost_answers.question(Window(hour(0), hour(HOURS)), keys, now=hour(HOURS))
    found = fleet_costs.not_held(question.between([hour(0), hour(7), hour(HOURS)]), fleet_costs.Readings(hour(HOURS)))
    assert found is not None
    added: NotHeld = defaultdict(Fraction)
    for (_, names), usages in found.items():
        for column, usage in usages.items():
            if isinstance(column, Category):
                added[names, column.value] += usage.gpu_hours
    return {key: amount for key, amount in added.items() if amount}


def of_nodes() -> NotHeld:
    """Return the same from the accounts, split once over the whole time: of a node what its GPUs were, and what was
    unmanaged on it.
    """
    found: NotHeld = defaultdict(Fraction)
    for key, account in accounts.read(hour(0), hour(HOURS)).items():
        for part in parts.split(account, hour(0), hour(HOURS)):
            node = "l40s-0" if part.category == parts.Category.UNMANAGED and not key.node else key.node
            if part.category != parts.Category.HELD:
                found[(key.cluster, key.flavor, node or UNALLOCATED), part.category.value] += part.gpu_hours
    return {key: amount for key, amount in found.items() if amount}


def without_nodes(found: NotHeld) -> NotHeld:
    added: NotHeld = defaultdict(Fraction)
    for (names, category), amount in found.items():
        added[names[:2], category] += amount
    return {key: amount for key, amount in added.items() if amount}


@RANDOM_LEDGERS
@given(seed=st.integers(0, 2**32))
def test_events_that_come_after_the_roll_up_and_in_any_order_give_the_same_in_the_end(seed: int) -> None:
    """Capacity is recorded first: its intervals of a unit end where the next begins."""
    made = Fleet(seed)
    record(RESOURCES, 0)
    events = [_Interval(made) for _ in range(3)]
    contents = []
    for order in (events, made.random.sample(events, len(events)), [*events, *events]):
        empty(*ROLLUPS, UsageInterval)
        roll_up(0, SHORT)
        for event in order:
            event.begin()
        roll_up_marked()
        for event in reversed(order):
            event.end()
        roll_up_marked()
        contents.append(content())
    roll_up(0, SHORT)
    assert contents == [content()] * 3


class _Interval:
    """A hold whose start and end can be recorded repeatedly."""

    def __init__(self, made: Fleet) -> None:
        self.key, self.holder = uuid4(), uuid4()
        self.start, self.until = sorted(hour(made.random.uniform(0, SHORT)) for _ in range(2))
        self.count = made.random.randrange(1, 4)

    def begin(self) -> None:
        metering.open_interval(self.key, self.holder, f"slot:{self.key}", self.start, attribution(), self.count, SEEN)

    def end(self) -> None:
        metering.close_interval(self.key, self.until, SEEN)


def roll_up_marked() -> None:
    for at in rollups.dirty_hours(LOCAL, hour(SHORT)):
        rollups.roll_up(LOCAL, at, at + HOUR)
    assert not DirtyHour.objects.filter(hour__lt=hour(SHORT)).exists()
