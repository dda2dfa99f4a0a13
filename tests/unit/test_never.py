"""The refusal of an infeasible request names every limit that applies: raising all makes it feasible, raising all but
one does not.
"""

from dataclasses import dataclass, replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from allocations.domain.admission import AdmissionInput, CountedLimit
from allocations.requests.rules import fits, violations
from quotas.limits.tree import Quota, Tree

PARENTS = {
    "all": None,
    "research": "all",
    "product": "all",
    "vision": "research",
    "language": "research",
    "shop": "product",
}
UNITS = st.integers(0, 12)
QUOTAS = st.fixed_dictionaries(
    dict.fromkeys(PARENTS, st.builds(Quota, UNITS, st.none() | st.integers(0, 6), st.none() | UNITS))
)


@dataclass(frozen=True)
class World:
    """All limits of a request of team vision by DRA; slices are whole GPUs, one unit of the pool each."""

    quotas: dict[str, Quota]
    total: int
    per_node: int
    limits: dict[str, int]
    count: int

    def ask(self) -> AdmissionInput:
        tree, own = Tree(PARENTS, self.quotas), self.quotas["vision"]
        return AdmissionInput(
            offering="h100/whole",
            pool="h100/slices",
            kind="whole",
            path="dra",
            count=self.count,
            total=self.total,
            free=self.total,
            per_node=self.per_node,
            quota=tree.potential("vision"),
            used=0,
            team="vision",
            own=None if own.borrowing is None else own.nominal + own.borrowing,
            department="research",
            counted_limits=tuple(CountedLimit(name, "x", limit, 0) for name, limit in self.limits.items()),
        )

    def raised(self, dimension: str) -> "World":
        kind, _, scope = dimension.partition(":")
        match kind:
            case "capacity":
                nodes = self.per_node if self.total else self.count  # a fleet that has none says nothing of its nodes
                return replace(self, total=max(self.total, self.count), per_node=nodes)
            case "node":
                return replace(self, per_node=max(self.per_node, self.count))
            case "team" | "department" if dimension not in self.limits:
                name = "vision" if kind == "team" else "research"
                quota = replace(self.quotas[name], nominal=self.quotas[name].nominal + self.count)
                return replace(self, quotas={**self.quotas, name: quota})
            case _:
                assert scope
                return replace(self, limits={**self.limits, dimension: self.count})


WORLDS = st.builds(
    World,
    QUOTAS,
    st.integers(0, 24),
    st.integers(0, 8),
    st.dictionaries(
        st.sampled_from(["member:all", "member:h100", "project:h100/whole", "team:h100", "department:all"]),
        st.integers(0, 16),
    ),
    st.integers(1, 16),
)


@settings(max_examples=500)
@given(WORLDS)
def test_raising_what_is_named_makes_it_possible_and_raising_less_does_not(world):
    assume(fits(world.ask()) == "never")
    named = [violation.dimension for violation in violations(world.ask())]
    assert len(named) == len(set(named))
    everything = world
    for dimension in named:
        everything = everything.raised(dimension)
    assert fits(everything.ask()) == "now"
    for left_out in named:
        all_but_one = world
        for dimension in named:
            if dimension != left_out:
                all_but_one = all_but_one.raised(dimension)
        assert fits(all_but_one.ask()) == "never"
