"""Counts limits that the portal enforces: granted at the request, released when the allocation has ended.

One conditional UPDATE decides, so two requests cannot both get the last unit; a check constraint guarantees it. Limits
are always updated in the order of their keys, so requests cannot deadlock.
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q, QuerySet

from portal.core.any_of import AnyOf
from portal.core.reading import read_rows
from portal.tenants.models import Project, User
from quotas.catalog.models import Offering
from quotas.limits.models import ENFORCED_BY_KUEUE, FRACTION_BASE, OF_A_DEPARTMENT, Limit, LimitUse


@dataclass(frozen=True)
class ResourceDemand:
    """What an allocation takes: slices of its offering, units of pools (by id), whole-GPU equivalents."""

    offering: int
    flavor: int
    slices: int
    gpus: Fraction
    pools: Mapping[int, Fraction] = field(default_factory=dict)

    def in_unit_of(self, limit: Limit) -> Fraction:
        """Return the demand in the limit's unit; 0 if the limit is about something else."""
        if limit.pool_id:
            return self.pools.get(limit.pool_id, Fraction(0))
        if limit.offering_id:
            return Fraction(self.slices) if limit.offering_id == self.offering else Fraction(0)
        if limit.flavor_id and limit.flavor_id != self.flavor:
            return Fraction(0)
        return self.gpus


def demand(offering: Offering, count: int) -> ResourceDemand:
    """Return the demand of so many slices; needs the offering's pool."""
    unit = offering.pool.resources
    parts = [Fraction(amount, unit[name]) for name, amount in offering.requests.items() if unit.get(name)]
    return ResourceDemand(
        offering=offering.pk,
        flavor=offering.flavor_id,
        slices=count,
        gpus=offering.gpu_share * count,
        pools={offering.pool_id: max(parts, default=Fraction(0)) * count},
    )


def fraction_units(amount: Fraction) -> int:
    """Return the amount in FRACTION_BASE, rounded up, so that nothing exceeds a limit; exact for shares of up to 16."""
    return ceil(amount * FRACTION_BASE)


def applicable_limits(
    teams: Collection[int],
    departments: Collection[int] | None,
    user: User | None = None,
    project: Project | None = None,
) -> QuerySet[Limit]:
    """Return the counted limits that apply to members of these teams: the project's, the person's in the teams, the
    teams' and their departments' (None: those of all departments); with their names, in the order in which they
    are locked. Teams and departments are ids.
    """
    of_departments = OF_A_DEPARTMENT if departments is None else Q(department__in=departments)
    of_teams = AnyOf("team_id", teams)
    holders = Q(of_teams, user=None) | of_departments
    if user is not None:
        holders |= Q(of_teams, user=user)
    if project is not None:
        holders |= Q(project=project)
    rows = Limit.objects.filter(holders).exclude(ENFORCED_BY_KUEUE)
    return rows.select_related("department", "team", "project", "user", "pool", "offering", "flavor").order_by("pk")


class LimitReached(Exception):
    """A limit has too little left; nothing was counted."""

    def __init__(self, limit: Limit) -> None:
        super().__init__(f"{limit.dimension} of {limit.holder} has no room")
        self.limit = limit


def grant(allocation: UUID, limits: Iterable[Limit], demanded: ResourceDemand) -> None:
    """Count the demand against every limit that applies, or against none. Raises LimitReached."""
    in_order = sorted(limits, key=lambda one: one.pk)
    amounts = [(limit, fraction_units(demanded.in_unit_of(limit))) for limit in in_order if demanded.in_unit_of(limit)]
    with transaction.atomic() if len(amounts) > 1 else nullcontext():
        for limit, amount in amounts:
            if not _changed(_GRANT, limit=limit.pk, amount=amount, allocation=allocation, unit=FRACTION_BASE):
                raise LimitReached(limit)


def release(allocation: UUID) -> None:
    """Release what an ended allocation counted. Repeating it changes nothing."""
    for row in read_rows(_COUNTED, [allocation]):
        _changed(_RELEASE, use=row.id, unit=FRACTION_BASE)


_COUNTED = "SELECT id FROM limits_limituse WHERE allocation = %s AND released_seq IS NULL ORDER BY limit_id"
# One statement each, so that the row everybody waits for is locked no longer than the database needs.
_GRANT = """
    WITH granted AS (
        UPDATE limits_limit SET used = used + %(amount)s, changes = changes + 1
        WHERE id = %(limit)s AND used + %(amount)s <= nominal::bigint * %(unit)s RETURNING changes
    )
    INSERT INTO limits_limituse (limit_id, allocation, parts, granted_seq)
    SELECT %(limit)s, %(allocation)s, %(amount)s, changes FROM granted
"""
_RELEASE = """
    WITH mine AS (
        SELECT parts, limit_id FROM limits_limituse WHERE id = %(use)s AND released_seq IS NULL FOR UPDATE
    ),
    freed AS (
        UPDATE limits_limit SET used = used - parts, changes = changes + 1,
            allowance = greatest(nominal::bigint * %(unit)s, used - parts)
        FROM mine WHERE id = limit_id RETURNING changes
    )
    UPDATE limits_limituse SET released_seq = changes FROM freed WHERE id = %(use)s
"""


def _changed(statement: str, **values: int | UUID) -> bool:
    """Return whether the statement wrote a row."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return bool(cursor.rowcount == 1)


def recount(limit: Limit, uses: Iterable[tuple[UUID, ResourceDemand]]) -> None:
    """Recompute the count of a limit from its holder's allocations. The caller locks out new grants."""
    LimitUse.objects.filter(limit=limit).delete()
    amounts = ((id_, fraction_units(demanded.in_unit_of(limit))) for id_, demanded in uses)
    counted = [(id_, amount) for id_, amount in amounts if amount]
    rows = [
        LimitUse(limit=limit, allocation=id_, parts=amount, granted_seq=number)
        for number, (id_, amount) in enumerate(counted, start=1)
    ]
    LimitUse.objects.bulk_create(rows)
    used = sum(row.parts for row in rows)
    allowance = max(limit.nominal * FRACTION_BASE, used)
    Limit.objects.filter(pk=limit.pk).update(used=used, changes=len(rows), allowance=allowance)
    limit.refresh_from_db()
