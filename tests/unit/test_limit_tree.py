"""The quota of a queue in a tree of cohorts: Kueue's arithmetic, and its invariants."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotas.limits.tree import Quota, Tree

PARENTS = {"research": None, "vision": "research", "language": "research"}
AMOUNTS = {"vision": Quota(4, 2), "language": Quota(4, 2)}


def test_a_team_alone_has_its_nominal_and_what_it_may_borrow():
    tree = Tree(PARENTS, AMOUNTS)
    assert tree.potential("vision") == tree.available("vision") == 6


def test_what_others_use_of_their_own_is_not_there_to_borrow():
    assert Tree(PARENTS, AMOUNTS, {"language": 3}).available("vision") == 5


def test_what_others_borrowed_is_gone_until_it_is_reclaimed():
    tree = Tree(PARENTS, AMOUNTS, {"language": 6})
    assert (tree.available("vision"), tree.own_left("vision")) == (2, 4)
    assert tree.borrowed("language") == 2


def test_a_lending_limit_keeps_the_rest_at_home():
    tree = Tree(PARENTS, {"vision": Quota(4, 0, 1), "language": Quota(4, None)})
    assert tree.potential("language") == 5
    assert Tree(PARENTS, {"vision": Quota(4, 0, 0), "language": Quota(4, None)}).potential("language") == 4


def test_a_department_has_quota_of_its_own_for_all_its_teams():
    tree = Tree(PARENTS, {"research": Quota(3, None), "vision": Quota(1, None)}, {"language": 0})
    assert tree.potential("vision") == 4
    assert tree.potential("language") == 0


def test_departments_within_one_another_borrow_what_their_own_limit_lets_through():
    parents = {"all": None, "research": "all", "product": "all", "vision": "research", "search": "product"}
    terms = {"vision": Quota(2, None), "search": Quota(8, 0), "research": Quota(0, 3)}
    tree = Tree(parents, terms)
    assert tree.potential("vision") == 5
    used = Tree(parents, terms, {"search": 7})
    assert used.available("vision") == 3


def test_more_used_than_there_is_leaves_less_than_nothing():
    assert Tree(PARENTS, {"vision": Quota(2)}, {"vision": 5}).available("vision") == -3


QUOTAS = st.builds(Quota, st.integers(0, 9), st.none() | st.integers(0, 9), st.none() | st.integers(0, 9))
NESTED = {"root": None, "left": "root", "right": "root", "a": "left", "b": "left", "c": "right"}
QUEUES = "abc"


@given(
    st.fixed_dictionaries(dict.fromkeys(NESTED, QUOTAS)),
    st.lists(st.tuples(st.sampled_from(QUEUES), st.integers(1, 6))),
)
def test_whoever_takes_what_is_available_never_takes_more_than_there_is(quotas, asked):
    used = dict.fromkeys(QUEUES, 0)
    for queue, amount in asked:
        tree = Tree(NESTED, quotas, used)
        assert tree.available(queue) <= tree.potential(queue)
        if amount <= tree.available(queue):
            used[queue] += amount
    total = sum(quota.nominal for quota in quotas.values())
    assert sum(used.values()) <= total
    for queue in QUEUES:
        borrowing = quotas[queue].borrowing
        assert borrowing is None or used[queue] <= quotas[queue].nominal + borrowing


@pytest.mark.parametrize(("nominal", "borrowing"), list(product((0, 3), (0, 2, None))))
def test_raising_a_team_raises_what_it_can_have(nominal, borrowing):
    before = Tree(PARENTS, {**AMOUNTS, "vision": Quota(nominal, borrowing)})
    after = Tree(PARENTS, {**AMOUNTS, "vision": Quota(nominal + 5, borrowing)})
    assert after.potential("vision") == before.potential("vision") + 5
