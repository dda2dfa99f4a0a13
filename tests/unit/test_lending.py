"""Attribution of loans to lenders, and that nothing is lent twice."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from quotas.limits.lending import Debt, UsageChange, debts, over_time
from quotas.limits.tree import Quota

FLAT = {"research": None, "vision": "research", "language": "research", "speech": "research"}
T0 = datetime(2026, 11, 2, tzinfo=UTC)


def used(**amounts: float) -> dict[str, Fraction]:
    return {name: Fraction(amount) for name, amount in amounts.items()}


def test_two_lenders_lend_in_proportion_to_what_they_have_idle():
    quotas = {"vision": Quota(4), "language": Quota(4, None), "speech": Quota(4)}
    assert debts(FLAT, quotas, used(language=7, vision=2)) == [
        Debt("language", "speech", Fraction(2)),
        Debt("language", "vision", Fraction(1)),
    ]


def test_the_departments_own_quota_is_borrowed_first():
    quotas = {"research": Quota(2, None), "vision": Quota(4), "language": Quota(4, None)}
    assert debts(FLAT, quotas, used(language=7)) == [
        Debt("language", "research", Fraction(2)),
        Debt("language", "vision", Fraction(1)),
    ]


def test_a_team_lends_no_more_than_it_may():
    quotas = {"vision": Quota(4, 0, 1), "language": Quota(4, None), "speech": Quota(2)}
    owed = debts(FLAT, quotas, used(language=6))
    assert [debt.amount for debt in owed] == [Fraction(4, 3), Fraction(2, 3)]


def test_what_is_used_beyond_all_quota_is_owed_to_nobody():
    assert debts(FLAT, {"vision": Quota(1)}, used(vision=3)) == [Debt("vision", "", Fraction(2))]


def test_what_is_near_lends_before_what_is_far():
    parents = {"all": None, "research": "all", "product": "all", "a": "research", "b": "research", "c": "product"}
    quotas = {"a": Quota(1, None), "b": Quota(2), "c": Quota(9)}
    assert debts(parents, quotas, used(a=4)) == [Debt("a", "b", Fraction(2)), Debt("a", "c", Fraction(1))]


TEAMS = ("vision", "language", "speech")
QUOTAS = st.fixed_dictionaries(
    {name: st.builds(Quota, st.integers(0, 9), st.none(), st.none() | st.integers(0, 9)) for name in FLAT}
)


@given(QUOTAS, st.fixed_dictionaries({name: st.integers(0, 12).map(Fraction) for name in TEAMS}))
def test_debts_are_what_is_borrowed_and_no_lender_gives_what_it_has_not(quotas, usage):
    owed = debts(FLAT, quotas, usage)
    for team in TEAMS:
        borrowed = sum(debt.amount for debt in owed if debt.borrower == team)
        assert borrowed == max(0, usage[team] - quotas[team].nominal)
        lent = sum(debt.amount for debt in owed if debt.lender == team)
        assert lent <= max(0, quotas[team].nominal - usage[team])
    assert sum(debt.amount for debt in owed if debt.lender == "research") <= quotas["research"].nominal


def test_hours_are_counted_from_change_to_change():
    hour = timedelta(hours=1)
    changes = [
        UsageChange(T0, "vision", quota=Quota(4)),
        UsageChange(T0, "language", quota=Quota(2, None)),
        UsageChange(T0 + hour, "language", used=Fraction(4)),
        UsageChange(T0 + 3 * hour, "language", used=Fraction(-3)),
        UsageChange(T0 + 4 * hour, "language", used=Fraction(2)),
    ]
    assert over_time(FLAT, changes, T0 + 4 * hour + hour / 2) == [Debt("language", "vision", Fraction(9, 2))]


DEEP = {"all": None, "research": "all", "product": "all", "a": "research", "b": "product"}


def test_a_departments_own_quota_is_lent_beyond_it():
    quotas = {"research": Quota(8), "b": Quota(0, 8)}
    assert debts(DEEP, quotas, used(b=4)) == [Debt("b", "research", Fraction(4))]


def test_no_more_leaves_a_department_than_it_lends():
    quotas = {"all": Quota(1), "research": Quota(3, 0, 2), "a": Quota(3), "b": Quota(0, None)}
    owed = debts(DEEP, quotas, used(b=3))
    assert owed == [Debt("b", "a", Fraction(1)), Debt("b", "all", Fraction(1)), Debt("b", "research", Fraction(1))]


@given(
    st.fixed_dictionaries(
        {name: st.builds(Quota, st.integers(0, 9), st.none(), st.none() | st.integers(0, 9)) for name in DEEP}
    ),
    st.integers(0, 12).map(Fraction),
    st.integers(0, 12).map(Fraction),
)
def test_in_a_deep_tree_nothing_is_lent_twice(quotas, a, b):
    owed = debts(DEEP, quotas, {"a": a, "b": b})
    assert sum(debt.amount for debt in owed) == max(0, a - quotas["a"].nominal) + max(0, b - quotas["b"].nominal)
    for borrower, department, inside in (("b", "research", ("research", "a")), ("a", "product", ("product", "b"))):
        left = sum(debt.amount for debt in owed if debt.borrower == borrower and debt.lender in inside)
        assert left <= (float("inf") if quotas[department].lending is None else quotas[department].lending)
    for cohort in ("all", "research", "product"):
        assert sum(debt.amount for debt in owed if debt.lender == cohort) <= quotas[cohort].nominal
