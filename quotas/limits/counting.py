"""Limits that the portal keeps itself: taken at the request, given back when the allocation has ended.

One conditional UPDATE decides, so two that race for the last unit cannot both have it, and a check constraint stands
behind it. Limits are always updated in the order of their keys, so no two requests wait for each other in a circle.
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q, QuerySet

from portal.tenants.models import Project, Team, User
from quotas.catalog.models import Offering
from quotas.limits.models import FRACTION_BASE, KEPT_BY_KUEUE, Limit, LimitUse


@dataclass(frozen=True)
class ResourceDemand:
    """What an allocation takes: slices of its offering, units of pools (by id), whole-GPU equivalents."""

    offering: int
    flavor: int
    slices: int
    gpus: Fraction
    pools: Mapping[int, Fraction] = field(default_factory=dict)

    def of(self, limit: Limit) -> Fraction:
        """In the limit's unit; 0 where it is about something else."""
        if limit.pool_id:
            return self.pools.get(limit.pool_id, Fraction(0))
        if limit.offering_id:
            return Fraction(self.slices) if limit.offering_id == self.offering else Fraction(0)
        if limit.flavor_id and limit.flavor_id != self.flavor:
            return Fraction(0)
        return self.gpus


def demand(offering: Offering, count: int) -> ResourceDemand:
    """Of so many slices; needs the offering's pool."""
    unit = offering.pool.resources
    parts = [Fraction(amount, unit[name]) for name, amount in offering.requests.items() if unit.get(name)]
    return ResourceDemand(
        offering=offering.pk,
        flavor=offering.flavor_id,
        slices=count,
        gpus=offering.gpu_share * count,
        pools={offering.pool_id: max(parts, default=Fraction(0)) * count},
    )


def parts(amount: Fraction) -> int:
    """Rounded up, so that nothing is held beyond a limit; exact for shares of up to 16."""
    return ceil(amount * FRACTION_BASE)


def applying(
    teams: Collection[Team], departments: Collection[int], user: User | None = None, project: Project | None = None
) -> QuerySet[Limit]:
    """Limits counted here that bind members of these teams: the project's, the person's in the teams, the teams' and
    those of the `departments` that they stand in (ids); with their names, in the order in which they are taken."""
    holders = Q(team__in=teams, user=None) | Q(department__in=departments)
    if user is not None:
        holders |= Q(team__in=teams, user=user)
    if project is not None:
        holders |= Q(project=project)
    rows = Limit.objects.filter(holders).exclude(KEPT_BY_KUEUE)
    return rows.select_related("department", "team", "project", "user", "pool", "offering", "flavor").order_by("pk")


class NoRoom(Exception):
    """A limit has too little left; nothing was counted."""

    def __init__(self, limit: Limit) -> None:
        super().__init__(f"{limit.dimension} of {limit.holder} has no room")
        self.limit = limit


def take(allocation: UUID, limits: Iterable[Limit], demanded: ResourceDemand) -> None:
    """Count the demand against every limit that it touches, or against none. Raises NoRoom."""
    in_order = sorted(limits, key=lambda one: one.pk)
    wanted = [(limit, parts(demanded.of(limit))) for limit in in_order if demanded.of(limit)]
    with transaction.atomic() if len(wanted) > 1 else nullcontext():
        for limit, amount in wanted:
            if not _changed(_TAKE, limit=limit.pk, amount=amount, allocation=allocation, unit=FRACTION_BASE):
                raise NoRoom(limit)


def give_back(allocation: UUID) -> None:
    """The allocation has ended: what it counted is free again. Said twice, it is done once."""
    uses = LimitUse.objects.filter(allocation=allocation, given=None).order_by("limit_id").values_list("pk", flat=True)
    for use in uses:
        _changed(_GIVE_BACK, use=use, unit=FRACTION_BASE)


# One statement each, so that the row everybody waits for is locked no longer than the database needs.
_TAKE = """
    WITH granted AS (
        UPDATE limits_limit SET used = used + %(amount)s, changes = changes + 1
        WHERE id = %(limit)s AND used + %(amount)s <= nominal::bigint * %(unit)s RETURNING changes
    )
    INSERT INTO limits_limituse (limit_id, allocation, parts, taken)
    SELECT %(limit)s, %(allocation)s, %(amount)s, changes FROM granted
"""
_GIVE_BACK = """
    WITH mine AS (
        SELECT parts, limit_id FROM limits_limituse WHERE id = %(use)s AND given IS NULL FOR UPDATE
    ),
    freed AS (
        UPDATE limits_limit SET used = used - parts, changes = changes + 1,
            allowance = greatest(nominal::bigint * %(unit)s, used - parts)
        FROM mine WHERE id = limit_id RETURNING changes
    )
    UPDATE limits_limituse SET given = changes FROM freed WHERE id = %(use)s
"""


def _changed(statement: str, **values: int | UUID) -> bool:
    """Whether the statement wrote a row."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return bool(cursor.rowcount == 1)


def recount(limit: Limit, uses: Iterable[tuple[UUID, ResourceDemand]]) -> None:
    """Begin the count of a limit anew with what its holder's allocations take. The caller keeps others from taking."""
    LimitUse.objects.filter(limit=limit).delete()
    rows = [
        LimitUse(limit=limit, allocation=id_, parts=amount, taken=number)
        for number, (id_, amount) in enumerate(
            ((id_, parts(demanded.of(limit))) for id_, demanded in uses if demanded.of(limit)), start=1
        )
    ]
    LimitUse.objects.bulk_create(rows)
    used = sum(row.parts for row in rows)
    allowance = max(limit.nominal * FRACTION_BASE, used)
    Limit.objects.filter(pk=limit.pk).update(used=used, changes=len(rows), allowance=allowance)
    limit.refresh_from_db()
