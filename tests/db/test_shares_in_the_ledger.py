"""What the uses of a GPU are charged, in the ledger, its roll-ups, and of an allocation: whatever is recorded when."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise
from random import Random
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from portal.core import clock
from quotas.costs import ledger, rollups, selectors
from quotas.costs.rating import Window
from quotas.metering import accounts, balance, parts
from quotas.metering import services as metering
from quotas.metering.corrections import correct_pod_ends
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
from quotas.metering.units import GPU, FoundUnit, Unit
from tests.support import costs_by_moment, shares_by_moment
from tests.support.capacity import H100, SEEN, hold_gpu, offer, record, use_gpu_without_allocation
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.quotas import T0, attribution, hour
from tests.support.shares_by_moment import Piece
from tests.support.week.bill import Amount

pytestmark = pytest.mark.django_db
ROLLUPS = (AccountHour, HourTotal, DayTotal, RolledUpHour, DirtyHour)
HALF, FOUR_SEVENTHS = Fraction(1, 2), Fraction(4, 7)
G3, G4 = "gpu-0-mig-3g40gb-9-4", "gpu-0-mig-4g40gb-5-0"
WEIGHT = {G3: HALF, G4: FOUR_SEVENTHS}
PRICE = Fraction("3.2")
HOURS = 6


@pytest.fixture(autouse=True)
def an_h100(db: None) -> Iterator[None]:
    """Run the test at ten past seven, counted from its first hour: seven hours may be rolled up."""
    with clock.frozen(hour(0)):
        fleet()
        record({Unit("h100-0", GPU, "gpu-0"): FoundUnit(1, 1)}, 0)
    with clock.frozen(hour(7) + timedelta(minutes=10)):
        yield


def roll_up(*hours: int) -> None:
    for n in hours or {(each - T0) // HOUR for each in rollups.dirty_hours(LOCAL, hour(HOURS))}:
        rollups.roll_up(LOCAL, hour(n), hour(n + 1))


def charged(start: float = 0, end: float = HOURS) -> dict[UUID, Fraction]:
    """Return the GPU-hours of each holder, as costs have them."""
    sums = ledger.sums([hour(start), hour(end)], ["allocation"], {}, clock.now())
    return {UUID(one.names[0]): one.usage.gpu_hours for one in sums}


def rolled_up() -> dict[UUID | None, Fraction]:
    found: dict[UUID | None, Fraction] = defaultdict(Fraction)
    for row in AccountHour.objects.filter(category="held"):
        found[row.holder_id] += Fraction(row.amount) / Fraction(row.denominator) / parts.MICROSECONDS_PER_HOUR
    return found


def test_a_slice_that_is_recorded_late_is_charged_first_where_it_began_first() -> None:
    """4g takes 4 of 7 compute slices, 3g takes 4 of 8 memory slices: together 15/14."""
    of_3g = hold_gpu(G3, 2, 4, gpu_share=HALF).holder_id
    roll_up(*range(HOURS))
    assert charged() == rolled_up() == {of_3g: 1}
    of_4g = hold_gpu(G4, 1, 3, gpu_share=FOUR_SEVENTHS).holder_id
    assert {(each - T0) // HOUR for each in rollups.dirty_hours(LOCAL, hour(HOURS))} == set(range(1, HOURS))
    expected = {of_3g: Fraction(3, 7) + HALF, of_4g: 2 * FOUR_SEVENTHS}
    assert charged() == expected
    roll_up()
    assert charged() == rolled_up() == expected
    charges = selectors.charges_to_date([of_3g, of_4g], clock.now())
    assert {key: (charge.reserved, charge.cost) for key, charge in charges.items()} == {
        key: (hours, hours * PRICE) for key, hours in expected.items()
    }


def test_an_end_that_is_corrected_gives_the_other_slice_its_own_share_back() -> None:
    of_4g = hold_gpu(G4, 0, None, gpu_share=FOUR_SEVENTHS)
    of_3g = hold_gpu(G3, 1, 5, gpu_share=HALF).holder_id
    metering.close_interval(of_4g.key, hour(4), SEEN, estimated=True)
    roll_up(*range(HOURS))
    assert rolled_up()[of_3g] == 3 * Fraction(3, 7) + HALF
    correct_pod_ends(LOCAL, "trainer", [of_4g.slot], hour(2), SEEN)
    assert charged()[of_3g] == Fraction(3, 7) + 3 * HALF
    roll_up()
    assert charged() == rolled_up() == {of_4g.holder_id: 2 * FOUR_SEVENTHS, of_3g: Fraction(3, 7) + 3 * HALF}


def test_what_a_team_is_charged_beside_another_is_the_same_where_only_its_own_is_asked_for() -> None:
    hold_gpu(G4, 0, 4, gpu_share=FOUR_SEVENTHS, team="language")
    hold_gpu(G3, 1, 4, gpu_share=HALF)
    for keys in ((), ("team",), ("node", "member")):
        [found] = ledger.sums([hour(0), hour(2), hour(6)], keys, {"team": ["vision"]}, hour(2))
        assert (found.window.end, found.usage.gpu_hours) == (hour(2), Fraction(3, 7))


def test_a_mixed_layout_has_no_variance_and_is_balanced() -> None:
    offer("4g.40gb", FOUR_SEVENTHS)
    hold_gpu(G3, 0.5, 1, gpu_share=HALF)
    use_gpu_without_allocation(G4, 0, 1)
    found = balance.of_hour(LOCAL, hour(0))
    assert not found.failures
    assert {category: amount for category, amount in found.parts.items() if amount} == {
        Category.HELD: Fraction(1, 4),
        Category.UNMANAGED: Fraction(2, 7) + Fraction(1, 4),
        Category.IDLE: Fraction(3, 14),
    }


def test_rows_that_were_recorded_at_what_was_left_are_charged_that() -> None:
    """Before, the last to be recorded got a share of what was left, and the shares of a GPU never exceed it."""
    of_3g = hold_gpu(G3, 0, 2, gpu_share=HALF).holder_id
    of_4g = hold_gpu(G4, 1, 4, gpu_share=HALF).holder_id
    assert charged() == {of_3g: 1, of_4g: 3 * HALF}


class Hold:
    """A hold of a slice: what is recorded of it, in order, each step as often as may be."""

    def __init__(self, random: Random, number: int) -> None:
        self.key, self.holder = uuid4(), uuid4()
        self.device = random.choice([G3, G4, f"gpu-0-mig-1g10gb-19-{number}", f"gpu-0-mig-2g20gb-14-{number}"])
        self.slot = f"{LOCAL}/h100-0/{self.device}/{number}"
        weights = [*(Fraction(n, 7) for n in (1, 2, 4)), *(Fraction(n, 8) for n in (2, 4)), Fraction(2, 2**31 - 1)]
        self.share = random.choice(weights)
        moments = [hour(random.choice([n, n, n + random.random()])) for n in random.sample(range(HOURS), 3)]
        self.start, self.last_seen, self.end = sorted(moments)
        if random.random() < 0.3:
            self.last_seen, self.end = self.end, self.last_seen
        self.team = random.choice(["vision", "language"])
        self.steps: Sequence[Callable[[], object]] = [self.open, self.close, self.correct][
            : random.choice([1, 2, 3, 3])
        ]

    def open(self) -> None:
        values = attribution(**H100 | {"gpu_share": self.share, "team": self.team})
        metering.open_interval(self.key, self.holder, self.slot, self.start, values, 1, SEEN)

    def close(self) -> None:
        metering.close_interval(self.key, self.last_seen, SEEN, estimated=True)

    def correct(self) -> None:
        correct_pod_ends(LOCAL, "trainer", [self.slot], self.end, SEEN)


def record_in_some_order(random: Random, holds: Sequence[Hold]) -> None:
    """Record all steps of all holds, those of a hold in their order, some repeatedly, and roll up hours between."""
    left = [hold for hold in holds for _ in hold.steps]
    random.shuffle(left)
    done: dict[Hold, int] = defaultdict(int)
    for hold in left:
        hold.steps[done[hold]]()
        done[hold] += 1
        for step in hold.steps[: done[hold]] if random.random() < 0.2 else ():
            step()
        if random.random() < 0.3:
            roll_up(random.randrange(HOURS))


def by_second_calculation(edges: Sequence[float]) -> dict[tuple[Window, str], Amount]:
    groups, prices = defaultdict[str, list[Piece]](list), costs_by_moment.prices()
    for piece in shares_by_moment.pieces(clock.now()):
        groups[piece[0].team].append(piece)
    amounts = {
        (Window(hour(start), hour(end)), team): costs_by_moment.amount(pieces, prices, hour(start), hour(end))
        for start, end in pairwise(edges)
        for team, pieces in groups.items()
    }
    return {key: amount for key, amount in amounts.items() if amount.hours}


def by_team(edges: Sequence[float]) -> dict[tuple[Window, str], Amount]:
    sums = ledger.sums([hour(edge) for edge in edges], ["team"], {}, clock.now())
    return {(one.window, one.names[0]): costs_by_moment.of_sum(one) for one in sums}


def content() -> list[tuple[object, ...]]:
    columns = [field.attname for field in AccountHour._meta.concrete_fields if field.attname != "id"]
    return sorted(AccountHour.objects.order_by().values_list(*columns), key=repr)


@settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a smaller seed is no simpler ledger
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
def test_facts_that_arrive_in_any_order_late_twice_and_corrected_give_the_same_shares(seed: int) -> None:
    random = Random(seed)
    holds = [Hold(random, number) for number in range(random.randrange(2, 7))]
    edges = sorted({0, *(random.uniform(0, HOURS) for _ in range(2)), 3, HOURS})
    contents, live = [], []
    for _ in range(3):
        for model in (*ROLLUPS, Correction, UsageInterval, ForeignUse):
            model._default_manager.all().delete()
        record_in_some_order(random, holds)
        expected = by_second_calculation(edges)
        assert by_team(edges) == expected
        roll_up(*range(HOURS))
        assert by_team(edges) == expected
        contents.append(content())
        charges = selectors.charges_to_date([hold.holder for hold in holds], hour(HOURS))
        live.append(charges)
        of_ledger = charged()
        assert {key: one.reserved for key, one in charges.items() if one.reserved} == of_ledger
        adds_up()
    assert contents == [contents[0]] * 3
    assert live == [live[0]] * 3


def adds_up() -> None:
    """Check that at each moment the GPU is charged at most once, and all its parts are what it is."""
    assert CapacityInterval.objects.count() == 1
    [account] = accounts.read(hour(0), hour(HOURS), LOCAL).values()
    found = parts.split(account, hour(0), hour(HOURS))
    for moment in {part.start for part in found}:
        there = [part for part in found if part.start <= moment < part.end]
        assert sum(part.gpus for part in there) == 1
        assert sum(part.gpus for part in there if part.category == Category.HELD) <= 1
        assert all(part.gpus > 0 for part in there)
