"""What is free, what is held, and what a team can get: computed from observed holds, in a fixed number of queries."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from django.db.models import Sum

from allocations.capacity import flavor_devices
from allocations.domain.admission import AllocationLimit, Ask, Counted
from allocations.domain.phases import Phase
from allocations.models import Allocation, MirrorObject
from portal.tenants.models import Project, Team, User
from quotas.catalog.models import Kind, Offering, Pool
from quotas.catalog.selectors import room, units
from quotas.limits import counting
from quotas.limits import names as queue_names
from quotas.limits.models import Limit
from quotas.limits.selectors import Terms, terms
from quotas.limits.tree import Tree
from quotas.metering.models import UsageInterval

Claimed = tuple[str, str, Mapping[str, int]]
"""An own claim whose lease reserves: team, offering, and the units that it may take at most."""
RESERVING = (Phase.STARTING, Phase.ACTIVE, Phase.LEAVING, Phase.RELEASING)
"""Phases in which Kueue counts the lease against the team's quota."""


@dataclass(frozen=True)
class Capacity:
    """Slices of one offering. ``total`` is on healthy devices and without what others use beside the portal: GPUs, and
    the CPU, memory and pods that go with GPUs which nobody has.

    Where cards are cut on demand, ``total`` is what an idle fleet has, and ``free`` what fits beside that which stands
    on them now, with its share of its node."""

    total: int
    held: int
    free: int


@dataclass(frozen=True)
class Mine:
    """One team's side of an offering, in slices. ``limit`` is its own, ``most`` that with all it could ever borrow;
    ``can_borrow`` is the part of ``can_get_now`` that others would lend."""

    limit: int
    used: int
    can_get_now: int
    can_borrow: int = 0
    most: int = 0


@dataclass(frozen=True)
class Quota:
    """A team's quota in slices of one offering: its own, that with all it may borrow (None: no bound), the most that
    the tree of departments could give it, and what that has left now: below 0 where limits were lowered since."""

    own: int
    own_left: int
    bound: int | None
    most: int
    left: int


@dataclass(frozen=True)
class Part:
    """What a claim asks of one pool of its flavor, and the team's quota there, in the pool's units rounded up."""

    pool: str
    asked: int
    bound: int | None
    limit: int
    used: int


class Stock:
    """Capacity of offerings, and teams' use of it: read once, asked often.

    ``user`` and ``project`` are those for whom limits are asked that the portal counts itself. ``cliques``: NVLink
    cliques will be asked about, which are read from the nodes.
    """

    def __init__(
        self,
        teams: Iterable[Team] = (),
        *,
        user: User | None = None,
        project: Project | None = None,
        cliques: bool = False,
    ) -> None:
        self._offerings = {o.key: o for o in Offering.objects.select_related("pool__use", "flavor")}
        self._held = _held()
        self._reserved = _reserved()
        self._claimed = _claimed()
        self._drawn = self._draw(self._held, self._claimed)
        self._jobs = _jobs({(o.flavor.cluster_id, o.flavor.name) for o in self._offerings.values()})
        self._agreed = terms()
        self._usage = self._used_by_queue()
        teams = list(teams)
        self._counted = list(counting.applying(teams, self._agreed.above(teams), user, project))
        self._trees: dict[tuple[str, str], Tree] = {}
        named = {o.flavor_id: o.flavor for o in self._offerings.values() if o.flavor.path == "dra"}
        self._cards = flavor_devices.of(named.values(), cliques=cliques)

    def capacity(self, offering: Offering) -> Capacity:
        pool, held = offering.pool, self._held.get(offering.key, 0)
        if offering.flavor.partitionable:
            there, piece = self._cards[offering.flavor_id], flavor_devices.piece(offering)
            total = there.total(piece, empty=True)
            return Capacity(total=total, held=held, free=there.total(piece))
        total = room(units(pool), pool.resources, _draws(offering))
        free = room(units(pool), pool.resources, _draws(offering), self._drawn.get(pool.key, {}))
        return Capacity(total=total, held=held, free=min(free, total))

    def mine(self, team: Team, offering: Offering) -> Mine:
        quota = self.quota(team, offering)
        lefts = [one.limit - one.used for one in self.counted(team, offering, counting.draw(offering, 1))]
        now = max(0, min([self.capacity(offering).free, quota.left, *lefts]))
        return Mine(
            limit=quota.own,
            used=self._used(team, offering),
            can_get_now=now,
            can_borrow=max(0, now - quota.own_left),
            most=quota.most,
        )

    def ask(
        self,
        project: Project,
        offering: Offering,
        count: int,
        *,
        allocation_limits: Collection[AllocationLimit] = (),
        spread: bool = False,
        constraints: Collection[str] = (),
        drawn: counting.Draw | None = None,
    ) -> Ask:
        """A request of ``count`` slices as the rules read it; ``drawn`` by one of them, where it is a claim's own."""
        capacity, quota = self.capacity(offering), self.quota(project.team, offering)
        there, piece = self._cards.get(offering.flavor_id), flavor_devices.piece(offering)
        together = {
            empty: there.together(piece, constraints, spread=spread, empty=empty) if there else None
            for empty in (True, False)
        }
        return Ask(
            offering=offering.key,
            pool=offering.pool.key,
            kind=offering.kind,
            path=offering.flavor.path,
            count=count,
            total=capacity.total,
            free=capacity.free,
            per_node=offering.per_node,
            quota=quota.most,
            used=max(0, quota.most - quota.left),
            own=quota.bound,
            team=project.team.slug,
            department=project.team.department.slug,
            counted=tuple(self.counted(project.team, offering, drawn or counting.draw(offering, 1))),
            hidden=not offering.is_offered,
            allocation_limits=tuple(allocation_limits),
            spread=spread,
            constraints=tuple(constraints),
            together=together[True],
            free_together=together[False],
            one_at_a_time=offering.one_at_a_time,
            replicas=offering.replicas,
            sharing=offering.sharing,
        )

    def offerings(self) -> list[Offering]:
        """What is offered, sorted by key."""
        return [o for _, o in sorted(self._offerings.items()) if o.is_offered]

    def quota(self, team: Team, offering: Offering) -> Quota:
        """The team's quota of the offering beside all that it and those it lends to draw, tenants' own Jobs too."""
        pool, draws, queue = offering.pool, _draws(offering), queue_names.cluster_queue(team.slug)
        agreed = self._agreed.quota(queue, pool.key)
        bound = None if agreed.borrowing is None else agreed.nominal + agreed.borrowing

        def least(amount: Callable[[Tree], int]) -> int:
            rooms = [
                amount(self._tree(pool, resource)) // n if resource in pool.resources else 0
                for resource, n in draws.items()
                if n
            ]
            return min(rooms, default=0)

        return Quota(
            own=room(agreed.nominal, pool.resources, draws),
            own_left=max(0, least(lambda tree: tree.own_left(queue))),
            bound=None if bound is None else room(bound, pool.resources, draws),
            most=max(0, least(lambda tree: tree.potential(queue))),
            left=least(lambda tree: tree.available(queue)),
        )

    def lend_to_each_other(self, one: Team, other: Team) -> bool:
        """Whether both stand in one tree of departments."""
        roots = {self._agreed.root(queue_names.cluster_queue(team.slug)) for team in (one, other)}
        return len(roots) == 1

    def counted(self, team: Team, offering: Offering, drawn: counting.Draw) -> list[Counted]:
        """Limits that the portal counts itself, in slices that each take ``drawn``."""
        found = []
        for limit in self._counted:
            per_slice = drawn.of(limit)
            if per_slice and self.binds(limit, team):
                most = limit.nominal // per_slice
                left = max(Fraction(0), limit.nominal - limit.units_used) // per_slice
                used = max(most - left, limit.units_used // per_slice)  # more than it has, where it was lowered
                found.append(Counted(limit.dimension, limit.holder, most, used))
        return found

    def limits(self) -> list[Limit]:
        """The limits that are counted, as they were read."""
        return self._counted

    def binds(self, limit: Limit, team: Team) -> bool:
        """Whether it is the team's, of a department that it stands in, or of somebody or something in the team."""
        is_below = limit.department_id is None or limit.department_id in self._agreed.above([team])
        return limit.team_id in (None, team.pk) and is_below

    def parts(self, team: Team, offering: Offering, amounts: Mapping[str, int]) -> list[Part]:
        """A claim's amounts by the pools of its flavor that have them."""
        queue = queue_names.cluster_queue(team.slug)
        found = []
        for pool in self._pools(offering.flavor_id):
            if not amounts.keys() & pool.resources.keys():
                continue
            agreed = self._agreed.quota(queue, pool.key)
            trees = {name: self._tree(pool, name) for name in pool.resources}
            most = min(tree.potential(queue) // pool.resources[name] for name, tree in trees.items())
            left = min(tree.available(queue) // pool.resources[name] for name, tree in trees.items())
            found.append(
                Part(
                    pool.key,
                    asked=_units(amounts, pool.resources),
                    bound=None if agreed.borrowing is None else agreed.nominal + agreed.borrowing,
                    limit=most,
                    used=max(0, most - left),
                )
            )
        return found

    def units_by_queue(self, pool: Pool) -> dict[str, Fraction]:
        """What each queue (by its name in Kueue) has reserved of the pool, in its units."""
        flavor = pool.key.partition("/")[0]
        return {
            queue: max(Fraction(used.get((flavor, name), 0), amount) for name, amount in pool.resources.items())
            for queue, used in self._usage.items()
        }

    def beyond(self, agreed: Terms, name: str, pool: Pool) -> tuple[Fraction, Fraction]:
        """Of what the queue or cohort uses of the pool, in its units, were that ``agreed``: what is more than it could
        ever have, and what is not its own but borrowed."""
        over = borrowed = Fraction(0)
        for resource, amount in pool.resources.items():
            tree = agreed.tree(pool.key, amount, self._by_queue(pool, resource))
            over = max(over, Fraction(tree.usage(name) - tree.potential(name), amount))
            borrowed = max(borrowed, Fraction(tree.borrowed(name), amount))
        return over, borrowed

    def draw_of_claim(self, offering: Offering, amounts: Mapping[str, int], gpus: Fraction) -> counting.Draw:
        """What a claim takes at most, as limits count it."""
        units = {
            pool.pk: max(Fraction(amounts.get(name, 0), amount) for name, amount in pool.resources.items())
            for pool in self._pools(offering.flavor_id)
        }
        return counting.Draw(offering.pk, offering.flavor_id, 1, gpus, {pk: n for pk, n in units.items() if n})

    def _tree(self, pool: Pool, resource: str) -> Tree:
        if (pool.key, resource) not in self._trees:
            used = self._by_queue(pool, resource)
            self._trees[pool.key, resource] = self._agreed.tree(pool.key, pool.resources[resource], used)
        return self._trees[pool.key, resource]

    def _by_queue(self, pool: Pool, resource: str) -> dict[str, int]:
        """What each queue (by its name in Kueue) has reserved of one of the pool's resources."""
        flavor = pool.key.partition("/")[0]
        return {queue: amounts.get((flavor, resource), 0) for queue, amounts in self._usage.items()}

    def _used(self, team: Team, offering: Offering) -> int:
        """Slices of the offering that the team draws, by its tenants' own Jobs too."""
        own = self._jobs[queue_names.cluster_queue(team.slug), offering.flavor.name, offering.resource]
        return self._reserved.get((team.slug, offering.key), 0) + own

    def _used_by_queue(self) -> dict[str, dict[tuple[str, str], int]]:
        """What each queue has reserved: by our leases, as their phases tell, and by tenants' own Jobs."""
        used: dict[str, dict[tuple[str, str], int]] = defaultdict(lambda: defaultdict(int))
        for team in {team for team, _ in self._reserved} | {team for team, _, _ in self._claimed}:
            of_queue = used[queue_names.cluster_queue(team)]
            for pool, amounts in self._drawn_by(team).items():
                for resource, amount in amounts.items():
                    of_queue[pool.partition("/")[0], resource] += amount
        for (queue, flavor, resource), amount in self._jobs.items():
            used[queue][flavor, resource] += amount
        return used

    def _pools(self, flavor: int) -> list[Pool]:
        pools = {o.pool.key: o.pool for o in self._offerings.values() if o.flavor_id == flavor}
        return [pool for _, pool in sorted(pools.items())]

    def _drawn_by(self, team: str) -> dict[str, dict[str, int]]:
        slices = {key: n for (t, key), n in self._reserved.items() if t == team}
        return self._draw(slices, [claimed for claimed in self._claimed if claimed[0] == team])

    def _draw(self, slices: Mapping[str, int], claims: Iterable[Claimed]) -> dict[str, dict[str, int]]:
        """Pool → resource → amount drawn by so many slices of each offering, and by these claims."""
        drawn: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for key, count in slices.items():
            if offering := self._offerings.get(key):
                for resource, amount in offering.requests.items():
                    drawn[offering.pool.key][resource] += amount * count
        for _, key, amounts in claims:
            if offering := self._offerings.get(key):
                for pool in self._pools(offering.flavor_id):
                    for resource in amounts.keys() & pool.resources.keys():
                        drawn[pool.key][resource] += amounts[resource]
        return drawn


def _draws(offering: Offering) -> Mapping[str, int]:
    """What one slice draws; an own claim is spoken of in units of its flavor's main pool."""
    draws: Mapping[str, int] = offering.pool.resources if offering.kind == Kind.CLAIM else offering.requests
    return draws


def _units(amounts: Mapping[str, int], unit: Mapping[str, int]) -> int:
    return max((-(-amounts.get(resource, 0) // amount) for resource, amount in unit.items()), default=0)


def _held() -> dict[str, int]:
    rows = UsageInterval.objects.filter(end=None).order_by().values_list("offering").annotate(n=Sum("count"))
    return dict(rows)


def _reserved() -> dict[tuple[str, str], int]:
    rows = (
        Allocation.objects.filter(ended_at=None, phase__in=RESERVING)
        .order_by()
        .values_list("project__team__slug", "offering__key")
        .annotate(n=Sum("count"))
    )
    return {(team, offering): n for team, offering, n in rows}


def _jobs(flavors: Collection[tuple[str, str]]) -> Counter[tuple[str, str, str]]:
    """What workloads that are no leases of ours have reserved, by queue, flavor and resource; of ``flavors``, each
    with its cluster before it: another cluster may have some of the same name that are not the portal's."""
    rows = MirrorObject.objects.filter(kind="Workload", allocation="").exclude(facts__cluster_queue="")
    found: Counter[tuple[str, str, str]] = Counter()
    for cluster, queue, usage in rows.values_list("cluster", "facts__cluster_queue", "facts__usage"):
        for flavor, drawn in (usage or {}).items() if queue else ():
            if (cluster, flavor) in flavors:
                found.update({(queue, flavor, resource): amount for resource, amount in drawn.items()})
    return found


def _claimed() -> list[Claimed]:
    rows = Allocation.objects.filter(claim__isnull=False, ended_at=None, phase__in=RESERVING).order_by()
    found = rows.values_list("project__team__slug", "offering__key", "claim__built__units")
    return [(team, offering, amounts or {}) for team, offering, amounts in found]
