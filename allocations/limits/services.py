"""Limits as people change them: who may, what the holder's allocations count, and what a change would do."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from django.db import transaction
from django.db.models import QuerySet

from allocations.capacity import counted as counted_limits
from allocations.capacity.snapshot import RESERVING, Stock
from allocations.models import Allocation
from portal.core.errors import NotVisible
from portal.core.locks import advisory_lock
from portal.tenants import access
from portal.tenants.models import Department, Membership, Project, Team, User
from quotas.catalog.models import Flavor, Offering, Pool
from quotas.limits import differences, names, selectors, services
from quotas.limits.models import Limit
from quotas.limits.services import Holder, Scope


@dataclass(frozen=True)
class Terms:
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

    before: Terms | None
    after: Terms
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
    departments = selectors.terms().above(teams)
    return rows.filter(team__in=teams) | rows.filter(project__team__in=teams) | rows.filter(department__in=departments)


def one(user: User, id_: int) -> Limit:
    """The limit, or NotVisible."""
    row = visible(user).filter(pk=id_).first()
    if row is None:
        raise NotVisible("The limit", hint="GET /limits lists those you see.")
    return row


def require(user: User, holder: Holder) -> None:
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


def set_limit(user: User, holder: Holder, scope: Scope, terms: Terms) -> Limit:
    """Raises NotVisible, Forbidden, Invalid. Ends nothing that is held, even beyond the new limit: of Kueue's quota
    what is borrowed then may be taken back, with notice, for whose own it is."""
    require(user, holder)
    counted = not Limit(**services.who(holder), **services.what(scope)).kept_by_kueue
    with transaction.atomic(), advisory_lock("limits"):  # nobody takes or gives back while it is counted
        uses = counted_limits.uses(Stock(), holder) if counted else []
        return services.set_limit(user.username, holder, scope, **vars(terms), uses=uses)


def remove_limit(user: User, limit: Limit) -> None:
    require(user, services.parties(limit)[0])
    services.remove_limit(user.username, limit)


def effect(user: User, holder: Holder, scope: Scope, terms: Terms) -> Effect:
    """What `set_limit` would do, without doing it; permission as there."""
    require(user, holder)
    row = Limit(**services.who(holder), **services.what(scope), **vars(terms))
    known = Limit.objects.filter(**services.key(row)).first()
    stock = Stock()
    counts = [
        (one, counted)
        for one in counted_limits.live_allocations(holder)
        if (counted := counted_limits.draw_of(stock, one).of(row))
    ]
    before = Terms(known.nominal, known.borrowing, known.lending) if known else None
    if row.pool and isinstance(holder, Department | Team):
        # kept by Kueue: what waits counts once it is admitted, and tenants' own Jobs count too
        counts = [(one, counted) for one, counted in counts if one.phase in RESERVING]
        by_queue = stock.units_by_queue(row.pool)
        in_use = sum((by_queue.get(queue, Fraction(0)) for queue in _queues(holder)), Fraction(0))
        over, borrowed = stock.beyond(selectors.terms().with_(row), selectors.name_of(holder), row.pool)
    else:
        in_use = sum((counted for _, counted in counts), Fraction(0))
        over, borrowed = max(Fraction(0), in_use - terms.nominal), Fraction(0)
    return Effect(
        before=before,
        after=terms,
        unit=unit(scope),
        in_use=in_use,
        over=over,
        borrowed=borrowed,
        touched=tuple(one for one, _ in counts),
        objects=tuple(_told_to_kueue(row)) if row.kept_by_kueue else (),
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
    agreed = selectors.terms()
    return differences.between(selectors.manifests(cluster, agreed), selectors.manifests(cluster, agreed.with_(row)))


def _sentence(row: Limit, before: Terms | None, in_use: Fraction, over: Fraction, borrowed: Fraction) -> str:
    unit_ = unit(services.parties(row)[1])
    if over and not row.kept_by_kueue:
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
    if before is not None and row.nominal > before.nominal and row.kept_by_kueue:
        return "Requests that wait for this quota are admitted by Kueue as soon as they fit."
    return "Nothing that is held is touched."
