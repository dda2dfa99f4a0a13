"""Reads quotas of departments and teams, and the Kueue objects they become."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property

from django.db.models import QuerySet

from portal.core.errors import NotVisible
from portal.core.query_templates import without_parameters
from portal.core.reading import Batch, Columns, Compiled, Rows, read_tables, relate
from portal.tenants import access
from portal.tenants.models import Department, Team, User
from quotas.catalog.models import Flavor
from quotas.catalog.selectors import pools
from quotas.limits import names, projection
from quotas.limits.models import ENFORCED_BY_KUEUE, Limit, QueuePolicy
from quotas.limits.projection import Policy
from quotas.limits.tree import Quota, Tree


@dataclass(frozen=True)
class QuotaSnapshot:
    """The quotas of all departments and teams that Kueue enforces, read at once in one query.

    ``quotas`` are of pools, in their units, by (name in Kueue, pool key).
    """

    departments: tuple[Department, ...]
    teams: tuple[Team, ...]
    quotas: Mapping[tuple[str, str], Quota]

    @cached_property
    def parents(self) -> dict[str, str | None]:
        slugs = {one.pk: one.slug for one in self.departments}
        above = {
            names.cohort(one.slug): names.cohort(slugs[one.parent_id]) if one.parent_id else None
            for one in self.departments
        }
        return above | {names.cluster_queue(one.slug): names.cohort(slugs[one.department_id]) for one in self.teams}

    def above(self, teams: Iterable[Team]) -> set[int]:
        """Return the ids of the teams' departments and of all their ancestors."""
        found: set[int] = set()
        for team in teams:
            next_: int | None = team.department_id
            while next_ is not None and next_ not in found:
                found.add(next_)
                next_ = self._departments_above.get(next_)
        return found

    @cached_property
    def _departments_above(self) -> dict[int, int | None]:
        return {one.pk: one.parent_id for one in self.departments}

    def root(self, name: str) -> str:
        """Return the root department of the queue or cohort."""
        while (parent := self.parents[name]) is not None:
            name = parent
        return name

    def quota(self, name: str, pool: str) -> Quota:
        """Return the quota as Kueue has it: a team lends at most what it has, and without a cohort it neither borrows
        nor lends.
        """
        found = self.quotas.get((name, pool), Quota())
        if self.parents[name] is None:
            return Quota(found.nominal, None, None)
        if found.lending is not None and name.startswith(names.cluster_queue("")):
            return Quota(found.nominal, found.borrowing, min(found.lending, found.nominal))
        return found

    def of_pool(self, pool: str) -> dict[str, Quota]:
        """Return the quotas of the pool, in its units."""
        return {name: self.quota(name, pool) for name in self.parents}

    def with_limit(self, row: Limit, *, is_removed: bool = False) -> "QuotaSnapshot":
        """Return the snapshot as it would be with this limit, which need not be saved; or without it."""
        if row.pool is None:
            return self
        quotas = dict(self.quotas)
        quotas.pop(key := (_name(row), row.pool.key), None)
        if not is_removed:
            quotas[key] = Quota(row.nominal, row.borrowing, row.lending)
        return replace(self, quotas=quotas)

    def tree(self, pool: str, amount: int, usage: Mapping[str, int]) -> Tree:
        """Return the tree of one resource, of which a unit of the pool has ``amount``; ``usage`` of it by queue."""
        quotas = {name: quota.times(amount) for name, quota in self.of_pool(pool).items()}
        return Tree(self.parents, quotas, usage)


def quota_snapshot() -> QuotaSnapshot:
    return read_quotas(Batch())()


def read_quotas(batch: Batch) -> Callable[[], QuotaSnapshot]:
    """Add the quotas to the batch; return the function that returns them."""
    departments, teams, limits = (batch.add(part) for part in _parts())

    def snapshot() -> QuotaSnapshot:
        relate(teams(), department=departments())
        quotas = {
            (
                names.cluster_queue(row.team__slug) if row.team__slug else names.cohort(row.department__slug),
                row.pool__key,
            ): Quota(row.nominal, row.borrowing, row.lending)
            for row in limits()
        }
        return QuotaSnapshot(tuple(departments()), tuple(teams()), quotas)

    return snapshot


@cache
def _parts() -> tuple[Compiled, ...]:
    rows = Limit.objects.filter(ENFORCED_BY_KUEUE).order_by()
    columns = ("department__slug", "team__slug", "pool__key", "nominal", "borrowing", "lending")
    return (
        without_parameters(Rows(Department.objects.order_by("slug"))),
        without_parameters(Rows(Team.objects.order_by("slug"))),
        without_parameters(Columns(rows, columns)),
    )


def visible_limits(user: User) -> QuerySet[Limit]:
    """Return the limits on teams that the person sees, and on their departments, projects and members."""
    rows = Limit.objects.select_related(
        "department", "team__department", "project__team", "user", "pool", "offering", "flavor"
    )
    if access.sees_all(user):
        return rows
    teams = list(access.visible_teams(user))
    departments = quota_snapshot().above(teams)
    return rows.filter(team__in=teams) | rows.filter(project__team__in=teams) | rows.filter(department__in=departments)


def visible_limit(user: User, id_: int) -> Limit:
    """Return the limit. Raises NotVisible."""
    row = visible_limits(user).filter(pk=id_).first()
    if row is None:
        raise NotVisible("The limit", hint="GET /limits lists those you see.")
    return row


def limits_with_quota() -> QuerySet[Limit]:
    """Return the limits by which a queue has quota of a pool or may borrow some."""
    return Limit.objects.filter(ENFORCED_BY_KUEUE).exclude(nominal=0, borrowing=0)


def below(department: Department) -> set[int]:
    """Return the ids of the department and of all its descendants. One query."""
    return _below(department.pk, dict(Department.objects.values_list("pk", "parent_id")))


def tree_of(department: int, parents: Mapping[int, int | None]) -> set[int]:
    """Return the ids of all departments that lend to each other with this one; ``parents`` are of all departments."""
    root = department
    while (parent := parents[root]) is not None:
        root = parent
    return _below(root, parents)


def _below(top: int, parents: Mapping[int, int | None]) -> set[int]:
    found = {top}
    while more := {pk for pk, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def policies() -> dict[str, Policy]:
    """Return the queue policies by name in Kueue; a missing one is `projection.DEFAULT_POLICY`."""
    return _by_name(*read_tables(_policies()))


def _policies() -> Rows:
    return Rows(QueuePolicy.objects.select_related("department", "team"))


def _by_name(rows: Iterable[QueuePolicy]) -> dict[str, Policy]:
    return {_name(row): Policy(row.weight, row.reclaim, row.within) for row in rows}


def policy_of(holder: Department | Team) -> Policy:
    row = QueuePolicy.objects.filter(**{holder._meta.model_name or "": holder}).first()
    return Policy(row.weight, row.reclaim, row.within) if row else projection.DEFAULT_POLICY


def name_of(holder: Department | Team) -> str:
    """Return the name in Kueue: of a team's ClusterQueue, or of a department's Cohort."""
    return names.cluster_queue(holder.slug) if isinstance(holder, Team) else names.cohort(holder.slug)


def _name(row: Limit | QueuePolicy) -> str:
    holder = row.team or row.department
    assert holder is not None
    return name_of(holder)


def _accepted(cluster: str) -> list[Rows]:
    return [Rows(pools(cluster).filter(flavor__accepted=True)), Rows(Flavor.objects.filter(cluster=cluster))]


def manifests(
    cluster: str, agreed: QuotaSnapshot | None = None, batch: Batch | None = None
) -> list[projection.Manifest]:
    """Return all Cohorts, ResourceFlavors and ClusterQueues that `cluster` should have, in the order to apply. One
    query, with the rest of the `batch`.

    Pools that are no longer found stay: Kueue forgets the usage of a flavor that is removed from a queue (tried on
    0.19.2: admitted leases drop out of its sum, which over-commits).
    """
    batch = batch or Batch()
    accepted, flavors, found = (batch.add(part) for part in (*_accepted(cluster), _policies()))
    agreed = agreed or read_quotas(batch)()
    competing = _by_name(found())
    shapes = [projection.PoolShape(pool.key, pool.flavor.name, pool.resources) for pool in accepted()]
    used = {shape.flavor for shape in shapes}

    def quotas(name: str) -> dict[str, Quota]:
        return {shape.key: agreed.quota(name, shape.key) for shape in shapes}

    return [
        *(
            projection.cohort(
                one.slug, agreed.parents[name], shapes, quotas(name), competing.get(name, projection.DEFAULT_POLICY)
            )
            for one in agreed.departments
            for name in (names.cohort(one.slug),)
        ),
        *(
            projection.resource_flavor(projection.FlavorShape(row.name, row.node_selector, row.tolerations))
            for row in flavors()
            if row.name in used
        ),
        *(
            projection.cluster_queue(
                one.slug, one.department.slug, shapes, quotas(name), competing.get(name, projection.DEFAULT_POLICY)
            )
            for one in agreed.teams
            for name in (names.cluster_queue(one.slug),)
        ),
    ]
