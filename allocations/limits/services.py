"""Sets limits that start with what their holders have, and previews what a change of limits would do."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from operator import or_

from django.db.models import Q

from allocations.capacity import recount
from allocations.capacity.offering_index import OfferingIndex
from allocations.capacity.quota_usage import QuotaUsage
from allocations.capacity.usage import CurrentUsage
from allocations.domain.phases import RESERVING
from allocations.models import Allocation
from portal.tenants.actors import Actor
from portal.tenants.models import Department, Team, User
from quotas.catalog.models import Flavor, Offering, Pool
from quotas.limits import differences, names, selectors, services
from quotas.limits.models import Limit
from quotas.limits.services import Holder, Scope
from quotas.limits.tree import Quota


@dataclass(frozen=True)
class Effect:
    """The effect of a change of a limit; amounts are in the scope's unit.

    ``over`` is the use beyond all that the holder can get with the new limit, ``borrowed`` that beyond its own quota.
    ``affected`` are the allocations that count against the limit, ``objects`` the changes of Kueue's objects.
    """

    before: Quota | None
    after: Quota
    unit: str
    in_use: Fraction
    over: Fraction
    borrowed: Fraction
    affected: tuple[Allocation, ...]
    objects: tuple[differences.Difference, ...]
    sentence: str


@dataclass(frozen=True)
class LimitChange:
    """A limit as it shall be; ``quota`` None removes it."""

    holder: Holder
    scope: Scope
    quota: Quota | None

    def row(self) -> Limit:
        """Return it as a row that is not saved; a removed one is like one of 0."""
        amounts = vars(self.quota or Quota())
        return Limit(**services.holder_fields(self.holder), **services.scope_fields(self.scope), **amounts)


def set_limit(actor: Actor, holder: Holder, scope: Scope, quota: Quota) -> Limit:
    """Set a limit as `quotas.limits.services.set_limit`, with the demands of the holder's allocations."""
    return services.set_limit(
        actor, holder, scope, **vars(quota), uses=lambda: recount.demands(OfferingIndex(), holder)
    )


def effect(user: User, holder: Holder, scope: Scope, quota: Quota) -> Effect:
    """Return the effect that `set_limit` would have; writes nothing. Raises as `set_limit`."""
    services.require(user, holder)
    changes = [LimitChange(holder, scope, quota)]
    return replace(effects(changes, current([changes[0].row()]))[0], objects=tuple(kueue_changes(changes)))


def current(rows: Sequence[Limit]) -> list[Limit | None]:
    """Return the limit of each row's holder and scope as it is now, None if there is none. One query."""
    identified = [services.lookup_fields(row) for row in rows]
    found = Limit.objects.filter(reduce(or_, (Q(**fields) for fields in identified))).order_by() if rows else []
    by_fields = {_identity(row): row for row in found}
    return [by_fields.get(_identity(row)) for row in rows]


def _identity(row: Limit) -> tuple[int | None, ...]:
    return tuple(getattr(row, f"{name}_id") for name in services.lookup_fields(row))


def effects(changes: Sequence[LimitChange], known: Sequence[Limit | None]) -> list[Effect]:
    """Return the effect of each change if all of them are made at once; `known` are the rows as they are now. Of
    Kueue's objects see `kueue_changes`.
    """
    usage = CurrentUsage()
    quotas = QuotaUsage(usage)
    after = with_changes(quotas.quotas, changes)
    live: dict[tuple[str, int | None, int | None], list[Allocation]] = {}
    found = []
    for change, before in zip(changes, known, strict=True):
        holder, row = change.holder, change.row()
        key = (row.holder_kind, row.department_id or row.team_id or row.project_id, row.user_id)
        if key not in live:
            live[key] = recount.live_allocations(holder)
        found.append(_effect(usage, quotas, after, holder, row, before, live[key]))
    return found


def _effect(
    usage: CurrentUsage,
    quotas: QuotaUsage,
    after: selectors.QuotaSnapshot,
    holder: Holder,
    row: Limit,
    known: Limit | None,
    live: Sequence[Allocation],
) -> Effect:
    counts = [
        (allocation, amount) for allocation in live if (amount := usage.index.demand_of(allocation).in_unit_of(row))
    ]
    before = Quota(known.nominal, known.borrowing, known.lending) if known else None
    if row.pool and isinstance(holder, Department | Team):
        # enforced by Kueue: queued allocations do not count, and tenants' own Jobs do
        counts = [(allocation, amount) for allocation, amount in counts if allocation.phase in RESERVING]
        by_queue = quotas.units_by_queue(row.pool)
        in_use = sum((by_queue.get(queue, Fraction(0)) for queue in _queues(holder)), Fraction(0))
        over, borrowed = quotas.excess(after, selectors.name_of(holder), row.pool)
    else:
        in_use = sum((amount for _, amount in counts), Fraction(0))
        over, borrowed = max(Fraction(0), in_use - row.nominal), Fraction(0)
    return Effect(
        before=before,
        after=Quota(row.nominal, row.borrowing, row.lending),
        unit=unit(services.holder_and_scope(row)[1]),
        in_use=in_use,
        over=over,
        borrowed=borrowed,
        affected=tuple(allocation for allocation, _ in counts),
        objects=(),
        sentence=_sentence(row, before, in_use, over, borrowed),
    )


def unit(scope: Scope) -> str:
    """Return the name of the scope's unit, in the plural."""
    match scope:
        case Pool():
            return "GPUs" if scope.key.endswith("/slices") else "units"
        case Offering():
            return "slices"
        case Flavor() | None:
            return "GPUs"


def text(amount: Fraction) -> str:
    """Return the amount with at most two decimals."""
    return f"{round(Decimal(amount.numerator) / amount.denominator, 2).normalize():f}"


def _queues(holder: Holder) -> list[str]:
    """Return the names of the ClusterQueues of the team, or of all teams below the department."""
    slugs = [holder.slug] if isinstance(holder, Team) else []
    if isinstance(holder, Department):
        slugs = list(Team.objects.filter(department__in=selectors.below(holder)).values_list("slug", flat=True))
    return [names.cluster_queue(slug) for slug in slugs]


def kueue_changes(changes: Sequence[LimitChange]) -> list[differences.Difference]:
    """Return the changes of Kueue's objects that these limits cause together, cluster by cluster."""
    quotas = selectors.quota_snapshot()
    changed = with_changes(quotas, changes)
    enforced = [row for change in changes if (row := change.row()).is_enforced_by_kueue]
    found = []
    for cluster in sorted({row.pool.flavor.cluster_id for row in enforced if row.pool}):
        before, after = (selectors.manifests(cluster, each) for each in (quotas, changed))
        found += differences.between(before, after)
    return found


def with_changes(quotas: selectors.QuotaSnapshot, changes: Iterable[LimitChange]) -> selectors.QuotaSnapshot:
    """Return the quotas as they would be with these changes."""
    for change in changes:
        if (row := change.row()).is_enforced_by_kueue:
            quotas = quotas.with_limit(row, is_removed=change.quota is None)
    return quotas


def _sentence(row: Limit, before: Quota | None, in_use: Fraction, over: Fraction, borrowed: Fraction) -> str:
    unit_ = unit(services.holder_and_scope(row)[1])
    if over and not row.is_enforced_by_kueue:
        return (
            f"{text(in_use)} {unit_} are in use, {text(over)} more than the new limit. Nothing ends; new requests are "
            "refused until enough is released."
        )
    reclaim = "Kueue may reclaim that, with notice, for the team that lends it."
    if over:
        return (
            f"{text(in_use)} {unit_} are in use, {text(over)} more than it can get with the new limit. New requests "
            f"wait until enough is released. The change ends nothing, but {text(borrowed)} would be borrowed: {reclaim}"
        )
    if borrowed:
        return f"{text(in_use)} {unit_} are in use, and {text(borrowed)} of them would be borrowed: {reclaim}"
    if before is not None and row.nominal > before.nominal and row.is_enforced_by_kueue:
        return "Requests that wait for this quota are admitted by Kueue as soon as they fit."
    return "What is in use is not affected."
