"""Whose idle GPUs are: conserved, never negative, and no team's that it lent."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotas.limits.lending import debts
from quotas.limits.tree import Quota
from quotas.metering.idle_owners import PARTS, IdleSpan, PoolQuotas, PoolUse, amounts, owned, unused

T0 = datetime(2026, 11, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
FLAT: dict[str, str | None] = {"research": None, "vision": "research", "language": "research", "speech": "research"}
DEEP: dict[str, str | None] = {
    **{"all": None, "research": "all", "product": "all"},
    **{"vision": "research", "language": "research", "speech": "product"},
}
TEAMS = ("vision", "language", "speech")
GPU_HOUR = PARTS * 3_600_000_000


def used(**units: float) -> dict[str, Fraction]:
    return {name: Fraction(amount) for name, amount in units.items()}


def idle_of(quotas: dict[str, Quota], usage: dict[str, Fraction], idle: float) -> dict[str, Fraction]:
    return owned(unused(FLAT, quotas, usage), Fraction(idle))


def test_a_team_owns_its_unused_quota():
    quotas = {"vision": Quota(4), "language": Quota(2)}
    assert idle_of(quotas, used(vision=1, language=2), 5) == used(vision=3)


def test_what_is_lent_is_not_idle_of_its_owner():
    quotas = {"vision": Quota(4), "language": Quota(2, None)}
    assert idle_of(quotas, used(language=5), 1) == used(vision=1)


def test_what_may_not_be_lent_stays_its_owners():
    quotas = {"vision": Quota(4, 0, 1), "language": Quota(2, None), "speech": Quota(2)}
    assert unused(FLAT, quotas, used(language=5)) == used(vision=3)


def test_a_departments_own_quota_is_its_own_and_is_lent_first():
    quotas = {"research": Quota(3), "vision": Quota(4), "language": Quota(1, None)}
    assert idle_of(quotas, used(language=3), 5) == used(research=1, vision=4)


def test_overcommitted_quotas_are_scaled_down_to_what_is_idle():
    quotas = {"vision": Quota(6), "language": Quota(6)}
    assert idle_of(quotas, used(language=4), 4) == used(vision=3, language=1)


def test_what_nobody_was_promised_is_nobodys():
    assert idle_of({"vision": Quota(2)}, used(vision=1), 7) == used(vision=1)


def test_what_is_used_beyond_all_quota_is_nobodys_loan():
    quotas = {"vision": Quota(4, 0, 0), "language": Quota(1)}
    assert idle_of(quotas, used(language=4), 1) == used(vision=1)


def pool(unit_gpus: Fraction = Fraction(1), **nominal: int) -> PoolQuotas:
    return PoolQuotas({name: Quota(units, None) for name, units in nominal.items()}, unit_gpus)


def hours(found: dict[str, int]) -> dict[str, Fraction]:
    return {name: Fraction(amount, GPU_HOUR) for name, amount in found.items()}


def test_hours_are_counted_from_change_to_change():
    uses = [
        PoolUse("l40s/gpu", "vision", Fraction(2), T0 - HOUR, T0 + HOUR / 2),
        PoolUse("l40s/gpu", "language", Fraction(3), T0 + HOUR / 4, None),
    ]
    idle = [
        IdleSpan(Fraction(4), T0, T0 + HOUR / 4),
        IdleSpan(Fraction(1), T0 + HOUR / 4, T0 + HOUR / 2),
        IdleSpan(Fraction(3), T0 + HOUR / 2, T0 + HOUR),
    ]
    found = amounts(FLAT, {"l40s/gpu": pool(vision=4, language=2)}, uses, idle, T0, T0 + HOUR)
    # 2 and 2 idle, then 1 of vision's is lent, then 3 of its 4 are idle.
    assert hours(found) == {"vision": Fraction(2 + 1 + 3 + 3, 4), "language": Fraction(2, 4)}


def test_a_unit_counts_as_the_gpus_that_it_is():
    idle = [IdleSpan(Fraction(2), T0, T0 + HOUR)]
    pools = {"a100/mig-1g.10gb": pool(Fraction(2, 15), vision=15)}
    assert hours(amounts(FLAT, pools, [], idle, T0, T0 + HOUR)) == {"vision": Fraction(2)}


def test_pools_of_the_same_gpus_are_scaled_down_together():
    idle = [IdleSpan(Fraction(1), T0, T0 + HOUR)]
    pools = {"h100/mig-1g.10gb": pool(Fraction(1, 7), vision=7), "h100/mig-3g.40gb": pool(Fraction(1, 2), language=2)}
    found = hours(amounts(FLAT, pools, [], idle, T0, T0 + HOUR))
    assert found == {"vision": Fraction(1, 2), "language": Fraction(1, 2)}


def test_use_of_another_pool_is_left_out():
    uses = [PoolUse("h100/slices", "vision", Fraction(1), T0, None)]
    idle = [IdleSpan(Fraction(4), T0, T0 + HOUR)]
    assert hours(amounts(FLAT, {"l40s/gpu": pool(vision=4)}, uses, idle, T0, T0 + HOUR)) == {"vision": Fraction(4)}


QUOTA = st.builds(Quota, st.integers(0, 9), st.none() | st.integers(0, 9), st.none() | st.integers(0, 9))
UNITS = st.fractions(0, 12, max_denominator=8)


@pytest.mark.parametrize("parents", [FLAT, DEEP], ids=["flat", "deep"])
@given(data=st.data())
def test_idle_is_conserved_and_never_negative_and_what_is_lent_is_nobodys(parents: Any, data: Any):
    quotas = data.draw(st.fixed_dictionaries(dict.fromkeys(parents, QUOTA)))
    usage = data.draw(st.fixed_dictionaries(dict.fromkeys(TEAMS, UNITS)))
    idle = data.draw(UNITS)
    found = owned(unused(parents, quotas, usage), idle)
    assert all(gpus > 0 for gpus in found.values())
    assert sum(found.values()) <= idle
    for name in parents:
        lent = sum(debt.amount for debt in debts(parents, quotas, usage) if debt.lender == name)
        assert found.get(name, 0) <= max(0, quotas[name].nominal - usage.get(name, 0)) - lent


@pytest.mark.parametrize("parents", [FLAT, DEEP], ids=["flat", "deep"])
@given(data=st.data())
def test_more_promised_than_idle_is_all_owned_alike_and_less_is_owned_in_full(parents: Any, data: Any):
    quotas = data.draw(st.fixed_dictionaries(dict.fromkeys(parents, QUOTA)))
    claims = unused(parents, quotas, data.draw(st.fixed_dictionaries(dict.fromkeys(TEAMS, UNITS))))
    promised, idle = sum(claims.values()), data.draw(UNITS)
    found = owned(claims, idle)
    assert sum(found.values()) == min(promised, idle)
    if promised > idle:
        assert all(found.get(name, 0) * promised == units * idle for name, units in claims.items())
    else:
        assert found == claims


@given(st.fixed_dictionaries(dict.fromkeys(FLAT, QUOTA)), st.fixed_dictionaries(dict.fromkeys(TEAMS, UNITS)))
def test_where_all_is_promised_once_each_owner_pays_for_its_quota(quotas, usage):
    """Used and idle of an owner is its quota, without what it lent and with what it borrowed."""
    there = Fraction(sum(quota.nominal for quota in quotas.values()))
    idle = max(Fraction(0), there - sum(usage.values()))
    found = owned(unused(FLAT, quotas, usage), idle)
    if sum(usage.values()) > there or any(debt.lender == "" for debt in debts(FLAT, quotas, usage)):
        return  # more is used than was promised
    for name in FLAT:
        owed = debts(FLAT, quotas, usage)
        lent = sum(debt.amount for debt in owed if debt.lender == name)
        borrowed = sum(debt.amount for debt in owed if debt.borrower == name)
        assert usage.get(name, 0) + found.get(name, 0) == quotas[name].nominal - lent + borrowed
    assert sum(found.values()) == idle


SPAN = st.tuples(st.integers(0, 60), st.integers(0, 60), st.fractions(0, 5, max_denominator=11))


@given(
    st.lists(st.tuples(st.sampled_from(TEAMS), SPAN), max_size=6),
    st.lists(SPAN, max_size=6),
    st.integers(1, 59),
    st.sampled_from([Fraction(1), Fraction(1, 7), Fraction(2, 15)]),
)
def test_amounts_are_conserved_and_adjoining_windows_add_up(uses, idle, cut, unit):
    def at(minute: int) -> datetime:
        return T0 + timedelta(minutes=minute)

    pools = {"l40s/gpu": pool(unit, vision=4, language=2, research=1)}
    given_uses = [PoolUse("l40s/gpu", team, units, at(a), at(b)) for team, (a, b, units) in uses]
    spans = [IdleSpan(gpus, at(a), at(b)) for a, b, gpus in idle]
    whole = amounts(FLAT, pools, given_uses, spans, T0, at(60))
    there = sum((gpus * max(0, b - a) * 60_000_000 for a, b, gpus in idle), Fraction(0))
    assert all(amount > 0 for amount in whole.values())
    assert sum(whole.values()) <= there * PARTS
    parts = [amounts(FLAT, pools, given_uses, spans, *bounds) for bounds in ((T0, at(cut)), (at(cut), at(60)))]
    for name in FLAT:
        apart = sum(part.get(name, 0) for part in parts)
        assert 0 <= whole.get(name, 0) - apart <= 1  # each cut rounds down once more
