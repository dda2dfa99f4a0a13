"""Write operations on limits, with permission, and the preview of a change."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from allocations.capacity import recount
from allocations.capacity.offering_index import OfferingIndex
from allocations.capacity.quota_usage import QuotaUsage
from allocations.capacity.usage import CurrentUsage
from allocations.domain.phases import RESERVING
from allocations.models import Allocation
from portal.core.errors import NotVisible
from portal.core.locks import advisory_lock
from portal.tenants import access
from portal.tenants.models import Department, Membership, Project, Team, User
from quotas.catalog.models import Flavor, Offering, Pool
from quotas.limits import differences, names, selectors, services
from quotas.limits.models import Limit
from quotas.limits.projection import Policy
from quotas.limits.services import Holder, Scope


@dataclass(frozen=True)
class LimitSpec:
    """What a limit is to be: in units of its scope; None of the last two: as much as there is."""

    nominal: int
    borrowing: int | None = 0
    lending: int | None = None


@dataclass(frozen=True)
class Effect:
    """What a change would do, in the scope's unit. ``over`` is in use beyond all that there is for the holder then,
    ``borrowed`` beyond what is its own; ``touched`` are the allocations that count against the limit; ``objects`` says
    what Kueue is told: (kind, name, field, before, after).
    """

    before: LimitSpec | None
    after: LimitSpec
    unit: str
    in_use: Fraction
    over: Fraction
    borrowed: Fraction
    touched: tuple[Allocation, ...]
    objects: tuple[differences.Difference, ...]
    sentence: str


def visible(user: User) -> QuerySet[Limit]:
    """Limits of what the person sees: teams, their departments, projects and members."""
    rows = Limit.objects.select_related(
        "department", "team__department", "project__team", "user", "pool", "offering", "flavor"
    )
    if access.sees_all(user):
        return rows
    teams = list(access.visible_teams(user))
    departments = selectors.quota_snapshot().above(teams)
    return rows.filter(team__in=teams) | rows.filter(project__team__in=teams) | rows.filter(department__in=departments)


def one(user: User, id_: int) -> Limit:
    """The limit, or NotVisible."""
    row = visible(user).filter(pk=id_).first()
    if row is None:
        raise NotVisible("The limit", hint="GET /limits lists those you see.")
    return row


def one_to_change(user: User, id_: int) -> Limit:
    """The limit, for who may change it; NotVisible or Forbidden else."""
    row = one(user, id_)
    _require(user, services.holder_and_scope(row)[0])
    return row


def _require(user: User, holder: Holder) -> None:
    """Operators set what departments and teams have; leads share it out among projects and members."""
    match holder:
        case Department():
            access.require(user, "limit.manage", None)
        case Team():
            access.require(user, "limit.manage", holder)
        case Project():
            access.require(user, "limit.share", holder.team)
        case Membership():
            access.require(user, "limit.share", holder.team)


def set_limit(user: User, holder: Holder, scope: Scope, spec: LimitSpec) -> Limit:
    """Raises NotVisible, Forbidden, Invalid. Ends nothing that is held, even beyond the new limit: of Kueue's quota
    what is borrowed then may be taken back, with notice, for whose own it is."""
    _require(user, holder)
    counted = not Limit(**services.holder_fields(holder), **services.scope_fields(scope)).is_enforced_by_kueue
    with transaction.atomic(), advisory_lock("limits"):  # nobody takes or gives back while it is counted
        uses = recount.demands(OfferingIndex(), holder) if counted else []
        return services.set_limit(user.username, holder, scope, **vars(spec), uses=uses)


def remove_limit(user: User, limit: Limit) -> None:
    _require(user, services.holder_and_scope(limit)[0])
    services.remove_limit(user.username, limit)


def set_policy(
    user: User, holder: Department | Team, values: Mapping[str, Any], check: Callable[[Policy], None]
) -> None:
    """How the holder competes for what others lend. ``check`` raises where the policy is not what was read before.

    Raises NotVisible, Forbidden, Invalid.
    """
    _require(user, holder)
    with transaction.atomic(), advisory_lock("limits"):
        check(selectors.policy_of(holder))
        services.set_policy(user.username, holder, **values)


def effect(user: User, holder: Holder, scope: Scope, spec: LimitSpec) -> Effect:
    """What `set_limit` would do, without doing it; permission as there."""
    _require(user, holder)
    row = Limit(**services.holder_fields(holder), **services.scope_fields(scope), **vars(spec))
    known = Limit.objects.filter(**services.lookup_fields(row)).first()
    usage = CurrentUsage()
    counts = [
        (one, counted)
        for one in recount.live_allocations(holder)
        if (counted := usage.index.demand_of(one).in_unit_of(row))
    ]
    before = LimitSpec(known.nominal, known.borrowing, known.lending) if known else None
    if row.pool and isinstance(holder, Department | Team):
        # kept by Kueue: what waits counts once it is admitted, and tenants' own Jobs count too
        counts = [(one, counted) for one, counted in counts if one.phase in RESERVING]
        quotas = QuotaUsage(usage)
        by_queue = quotas.units_by_queue(row.pool)
        in_use = sum((by_queue.get(queue, Fraction(0)) for queue in _queues(holder)), Fraction(0))
        over, borrowed = quotas.excess(quotas.quotas.with_limit(row), selectors.name_of(holder), row.pool)
    else:
        in_use = sum((counted for _, counted in counts), Fraction(0))
        over, borrowed = max(Fraction(0), in_use - spec.nominal), Fraction(0)
    return Effect(
        before=before,
        after=spec,
        unit=unit(scope),
        in_use=in_use,
        over=over,
        borrowed=borrowed,
        touched=tuple(one for one, _ in counts),
        objects=tuple(_told_to_kueue(row)) if row.is_enforced_by_kueue else (),
        sentence=_sentence(row, before, in_use, over, borrowed),
    )


def unit(scope: Scope) -> str:
    """In the plural."""
    match scope:
        case Pool():
            return "GPUs" if scope.key.endswith("/slices") else "units"
        case Offering():
            return "slices"
        case Flavor() | None:
            return "GPUs"


def text(amount: Fraction) -> str:
    """At most two decimals, none where it is whole."""
    return f"{round(Decimal(amount.numerator) / amount.denominator, 2).normalize():f}"


def _queues(holder: Holder) -> list[str]:
    """Names in Kueue of the queues that draw on what the team or department has."""
    slugs = [holder.slug] if isinstance(holder, Team) else []
    if isinstance(holder, Department):
        slugs = list(Team.objects.filter(department__in=selectors.below(holder)).values_list("slug", flat=True))
    return [names.cluster_queue(slug) for slug in slugs]


def _told_to_kueue(row: Limit) -> list[differences.Difference]:
    if row.pool is None:
        return []
    cluster = row.pool.flavor.cluster_id
    quotas = selectors.quota_snapshot()
    before, after = (selectors.manifests(cluster, each) for each in (quotas, quotas.with_limit(row)))
    return differences.between(before, after)


def _sentence(row: Limit, before: LimitSpec | None, in_use: Fraction, over: Fraction, borrowed: Fraction) -> str:
    unit_ = unit(services.holder_and_scope(row)[1])
    if over and not row.is_enforced_by_kueue:
        return (
            f"{text(in_use)} {unit_} are in use, {text(over)} more than the new limit. What is held stays held; "
            "nothing more is granted until enough of it is given back."
        )
    reclaim = "Kueue may take that back, with notice, for a team whose own it is."
    if over:
        return (
            f"{text(in_use)} {unit_} are in use, {text(over)} more than there is for it then. Nothing more is granted "
            f"until enough is given back. By itself nothing ends, but {text(borrowed)} are not its own: {reclaim}"
        )
    if borrowed:
        return f"Of {text(in_use)} {unit_} in use {text(borrowed)} are borrowed then: {reclaim}"
    if before is not None and row.nominal > before.nominal and row.is_enforced_by_kueue:
        return "Requests that wait for this quota are admitted by Kueue as soon as they fit."
    return "Nothing that is held is touched."
