"""The use of the quotas that Kueue enforces, and what remains of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from allocations.capacity.offering_index import OfferingIndex, amounts_per_slice
from allocations.capacity.usage import CurrentUsage
from portal.core.reading import Batch
from portal.tenants.models import Team
from quotas.catalog.models import Offering, Pool
from quotas.catalog.selectors import fitting_slices
from quotas.limits import names as queue_names
from quotas.limits.selectors import QuotaSnapshot, read_quotas
from quotas.limits.tree import Tree


@dataclass(frozen=True)
class TeamQuota:
    """A team's quota of one offering, in slices.

    - ``own``: its guaranteed quota; ``own_left``: what is unused of it.
    - ``bound``: its guaranteed quota plus its borrowing limit; None if borrowing is unlimited.
    - ``max_quota``: the most that the tree of departments could give it; ``left``: what remains of that now. Below 0 if
      limits were lowered below their use.
    """

    own: int
    own_left: int
    bound: int | None
    max_quota: int
    left: int


@dataclass(frozen=True)
class PoolRequest:
    """The units that a claim requests from one pool of its flavor, and the team's quota of the pool.

    All amounts are in units of the pool; ``requested`` is rounded up. ``bound`` is as in ``TeamQuota``.
    """

    pool: str
    requested: int
    bound: int | None
    limit: int
    used: int


class QuotaUsage:
    """The quotas of all departments and teams with their use, including tenants' own Jobs."""

    def __init__(self, usage: CurrentUsage | None = None, batch: Batch | None = None) -> None:
        batch = batch or Batch()
        self._usage = usage or CurrentUsage(batch=batch)
        self._read_quotas = read_quotas(batch)
        self._trees: dict[tuple[str, str], Tree] = {}

    @property
    def index(self) -> OfferingIndex:
        return self._usage.index

    @cached_property
    def quotas(self) -> QuotaSnapshot:
        return self._read_quotas()

    def of_team(self, team: Team, offering: Offering) -> TeamQuota:
        """Return the team's quota of the offering, and what remains of it after all reservations."""
        pool, per_slice, queue = offering.pool, amounts_per_slice(offering), queue_names.cluster_queue(team.slug)
        quota, bound = self.quotas.quota(queue, pool.key), self._bound(queue, pool)

        def least(amount: Callable[[Tree], int]) -> int:
            slices = [
                amount(self._tree(pool, resource)) // n if resource in pool.resources else 0
                for resource, n in per_slice.items()
                if n
            ]
            return min(slices, default=0)

        return TeamQuota(
            own=fitting_slices(quota.nominal, pool.resources, per_slice),
            own_left=max(0, least(lambda tree: tree.own_left(queue))),
            bound=None if bound is None else fitting_slices(bound, pool.resources, per_slice),
            max_quota=max(0, least(lambda tree: tree.potential(queue))),
            left=least(lambda tree: tree.available(queue)),
        )

    def reserved(self, team: Team, offering: Offering) -> int:
        """Return the slices of the offering that the team has reserved, including its tenants' own Jobs."""
        return self._usage.reserved_slices(team.slug, offering.key, offering.flavor.name, offering.resource)

    def lend_to_each_other(self, team: Team, other: Team) -> bool:
        """Return whether both teams are in one tree of departments."""
        roots = {self.quotas.root(queue_names.cluster_queue(each.slug)) for each in (team, other)}
        return len(roots) == 1

    def of_claim(self, team: Team, offering: Offering, amounts: Mapping[str, int]) -> list[PoolRequest]:
        """Return what a claim requests from each pool of its flavor that has some of its resources."""
        queue = queue_names.cluster_queue(team.slug)
        requests = []
        for pool in self._usage.index.pools_of(offering.flavor_id):
            if not amounts.keys() & pool.resources.keys():
                continue
            trees = {name: self._tree(pool, name) for name in pool.resources}
            most = min(tree.potential(queue) // pool.resources[name] for name, tree in trees.items())
            left = min(tree.available(queue) // pool.resources[name] for name, tree in trees.items())
            requested = _units(amounts, pool.resources)
            requests.append(PoolRequest(pool.key, requested, self._bound(queue, pool), most, max(0, most - left)))
        return requests

    def units_by_queue(self, pool: Pool) -> dict[str, Fraction]:
        """Return the units of the pool that each ClusterQueue has reserved."""
        flavor = pool.key.partition("/")[0]
        return {
            queue: max(Fraction(used.get((flavor, name), 0), amount) for name, amount in pool.resources.items())
            for queue, used in self._usage.by_queue.items()
        }

    def excess(self, quotas: QuotaSnapshot, name: str, pool: Pool) -> tuple[Fraction, Fraction]:
        """Return two parts of the use of a queue or cohort if the quotas were ``quotas``, in units of the pool.

        The first is above the most that it could have, the second is borrowed.
        """
        above = borrowed = Fraction(0)
        for resource, amount in pool.resources.items():
            tree = quotas.tree(pool.key, amount, self._by_queue(pool, resource))
            above = max(above, Fraction(tree.usage(name) - tree.potential(name), amount))
            borrowed = max(borrowed, Fraction(tree.borrowed(name), amount))
        return above, borrowed

    def _bound(self, queue: str, pool: Pool) -> int | None:
        quota = self.quotas.quota(queue, pool.key)
        return None if quota.borrowing is None else quota.nominal + quota.borrowing

    def _tree(self, pool: Pool, resource: str) -> Tree:
        if (pool.key, resource) not in self._trees:
            used = self._by_queue(pool, resource)
            self._trees[pool.key, resource] = self.quotas.tree(pool.key, pool.resources[resource], used)
        return self._trees[pool.key, resource]

    def _by_queue(self, pool: Pool, resource: str) -> dict[str, int]:
        """Return the amount of one of the pool's resources that each ClusterQueue has reserved."""
        flavor = pool.key.partition("/")[0]
        return {queue: amounts.get((flavor, resource), 0) for queue, amounts in self._usage.by_queue.items()}


def _units(amounts: Mapping[str, int], unit: Mapping[str, int]) -> int:
    return max((-(-amounts.get(resource, 0) // amount) for resource, amount in unit.items()), default=0)
