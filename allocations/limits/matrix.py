"""All quotas that Kueue enforces as one matrix: departments and teams by pool, with their use and their loans."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from allocations.capacity.quota_usage import QuotaUsage
from allocations.limits import services as limit_services
from allocations.limits.changes import allocated
from portal.tenants import access
from portal.tenants.models import Department, Team, User
from quotas.catalog.models import Pool
from quotas.catalog.selectors import pools, units
from quotas.limits import lending
from quotas.limits.lending import Amounts
from quotas.limits.selectors import QuotaSnapshot, name_of
from quotas.limits.tree import Quota


@dataclass(frozen=True)
class PoolColumn:
    """A pool with the name of its unit. ``available`` is what healthy devices have now, ``allocated`` the sum of all
    guaranteed quotas; both are None to a person who does not see all teams. ``has_devices``: a healthy device, held or
    free.
    """

    pool: Pool
    unit: str
    available: int | None
    allocated: int | None
    has_devices: bool = True


@dataclass(frozen=True)
class MatrixCell:
    """A holder's quota of a pool, as it was set, None if none was, and its use, in units of the pool.

    ``used`` of a department is that of all teams below it. ``borrowed`` is a team's use beyond its guaranteed quota,
    ``over`` the part of it that nobody lends. ``lent`` is what others use of the holder's quota.
    """

    pool: Pool
    quota: Quota | None
    used: Fraction
    borrowed: Fraction
    lent: Fraction
    over: Fraction


@dataclass(frozen=True)
class MatrixRow:
    """A department or team with a cell for each pool. ``depth`` is how many rows of departments are above it;
    ``stands_alone``: a department at the top, which nobody lends to and which lends to nobody.
    """

    holder: Department | Team
    depth: int
    stands_alone: bool
    cells: tuple[MatrixCell, ...]


@dataclass(frozen=True)
class Matrix:
    columns: tuple[PoolColumn, ...]
    rows: tuple[MatrixRow, ...]


def matrix(user: User, usage: QuotaUsage | None = None) -> Matrix:
    """Return the quotas of the teams that the person sees; and of all departments if the person sees all."""
    usage = usage or QuotaUsage()
    quotas, sees_all = usage.quotas, access.sees_all(user)
    found = list(pools().filter(flavor__accepted=True))
    with_devices = {pool.key for pool in found if (use := getattr(pool, "use", None)) and use.total}
    columns = tuple(
        PoolColumn(
            pool,
            limit_services.unit(pool),
            units(pool) if sees_all else None,
            allocated(quotas, pool.key) if sees_all else None,
            pool.key in with_devices,
        )
        for pool in found
    )
    rows = list(_below(quotas, None, 0)) if sees_all else [(team, 0) for team in access.visible_teams(user)]
    cells_of = _cells(usage, found, [name_of(holder) for holder, _ in rows])
    return Matrix(
        columns,
        tuple(
            MatrixRow(holder, depth, quotas.parents[name_of(holder)] is None, cells_of[name_of(holder)])
            for holder, depth in rows
        ),
    )


def with_devices_first(found: Matrix, *, shows_empty: bool) -> tuple[Matrix, int]:
    """Return the matrix with the pools that have devices first; without ``shows_empty`` none without devices of which
    nobody in it has quota or uses anything, and how many those are.
    """
    used = {cell.pool.key for row in found.rows for cell in row.cells if cell.quota or cell.used}
    ordered = sorted(found.columns, key=lambda column: not column.has_devices)
    shown = [one for one in ordered if shows_empty or one.has_devices or one.pool.key in used]
    place = {one.pool.key: number for number, one in enumerate(shown)}
    rows = tuple(
        replace(
            row,
            cells=tuple(
                sorted((cell for cell in row.cells if cell.pool.key in place), key=lambda cell: place[cell.pool.key])
            ),
        )
        for row in found.rows
    )
    return Matrix(tuple(shown), rows), len(ordered) - len(shown)


def narrowed(found: Matrix, team: str, pool: str) -> Matrix:
    """Return the rows whose team or department has ``team`` in its slug or name, and of them the cells whose pool has
    ``pool`` in its key; upper and lower case are the same.
    """
    team, pool = team.casefold(), pool.casefold()
    return Matrix(
        tuple(column for column in found.columns if pool in column.pool.key.casefold()),
        tuple(
            replace(row, cells=tuple(cell for cell in row.cells if pool in cell.pool.key.casefold()))
            for row in found.rows
            if team in row.holder.slug.casefold() or team in row.holder.name.casefold()
        ),
    )


def matrix_to_change(user: User, usage: QuotaUsage | None = None) -> Matrix:
    """Return the matrix to a person who may change it. Raises Forbidden."""
    access.require(user, "limit.manage", None)
    return matrix(user, usage)


def _below(quotas: QuotaSnapshot, parent: int | None, depth: int) -> Iterator[tuple[Department | Team, int]]:
    """Yield each department below the parent, its teams, and then what is below it."""
    for department in quotas.departments:
        if department.parent_id == parent:
            yield department, depth
            yield from ((team, depth + 1) for team in quotas.teams if team.department_id == department.pk)
            yield from _below(quotas, department.pk, depth + 1)


def _cells(usage: QuotaUsage, pools_: Sequence[Pool], shown: Sequence[str]) -> Mapping[str, tuple[MatrixCell, ...]]:
    quotas = usage.quotas
    cells: dict[str, list[MatrixCell]] = {name: [] for name in shown}
    for pool in pools_:
        used = usage.units_by_queue(pool)
        used_in = _with_departments(quotas.parents, used)
        borrowed: Amounts = defaultdict(Fraction)
        lent: Amounts = defaultdict(Fraction)
        over: Amounts = defaultdict(Fraction)
        for debt in lending.debts(quotas.parents, quotas.of_pool(pool.key), used):
            borrowed[debt.borrower] += debt.amount
            if debt.lender:
                lent[debt.lender] += debt.amount
            else:
                over[debt.borrower] += debt.amount
        for name in shown:
            quota = quotas.quotas.get((name, pool.key))
            cells[name].append(MatrixCell(pool, quota, used_in[name], borrowed[name], lent[name], over[name]))
    return {name: tuple(found) for name, found in cells.items()}


def _with_departments(parents: Mapping[str, str | None], used: Mapping[str, Fraction]) -> Amounts:
    """Return the use of each queue and, summed up, of each cohort above it."""
    found: Amounts = defaultdict(Fraction)
    for queue, amount in used.items():
        name: str | None = queue
        while name is not None:
            found[name] += amount
            name = parents.get(name)
    return found
