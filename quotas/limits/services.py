"""The only writer of limits and of the way teams compete. What people set goes through
`allocations.limits.services`, which asks for permission.
"""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction

from portal.audit.entries import audit
from portal.core.errors import Invalid
from portal.core.locks import advisory_lock
from portal.tenants.models import Department, Membership, Project, Team
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog.models import Flavor, Offering, Pool
from quotas.limits import counting
from quotas.limits.models import FRACTION_BASE, MAX_UNITS, Limit, LimitUse, QueuePolicy, Reclaim, Within

Holder = Department | Team | Project | Membership
Scope = Pool | Offering | Flavor | None
TERMS = ("nominal", "borrowing", "lending")


def set_limit(
    actor: str,
    holder: Holder,
    scope: Scope,
    nominal: int,
    *,
    borrowing: int | None = 0,
    lending: int | None = None,
    uses: Iterable[tuple[UUID, counting.ResourceDemand]] = (),
) -> Limit:
    """Let `holder` hold `nominal` units of `scope` (None: of all GPUs) at once; the cluster follows.

    Lowering it below what is held takes nothing away: what is held stays, and nothing more is granted. `uses` are what
    the holder's allocations draw, which a new limit that is counted here starts with. Raises Invalid.
    """
    row = Limit(**who(holder), **what(scope), nominal=nominal, borrowing=borrowing, lending=lending)
    _check(row)
    with transaction.atomic(), advisory_lock("limits"):
        known = Limit.objects.select_for_update(of=("self",)).filter(**key(row)).order_by().first()
        before = None if known is None else {name: getattr(known, name) for name in TERMS}
        after = {name: getattr(row, name) for name in TERMS}
        if before == after and known is not None:
            return known
        if known is None:
            row.allowance = nominal * FRACTION_BASE
            row.save()
            if not row.kept_by_kueue:
                counting.recount(row, uses)
        else:
            for name in TERMS:
                setattr(known, name, getattr(row, name))
            known.allowance = max(nominal * FRACTION_BASE, known.used)
            known.save(update_fields=[*TERMS, "allowance"])
            row = known
        team, project = whose(holder)
        target = f"{row.holder}/{row.scope}"
        audit(actor, "limit.set", target, team=team, project=project, before=before, after=after)
        if row.kept_by_kueue:
            _bring_along(row)
    return row


def remove_limit(actor: str, limit: Limit) -> None:
    """Without it, Kueue gives the holder nothing of its own; what is counted here is then without a bound."""
    team, project = whose(parties(limit)[0])
    with transaction.atomic(), advisory_lock("limits"):
        audit(
            actor,
            "limit.remove",
            f"{limit.holder}/{limit.scope}",
            team=team,
            project=project,
            before={name: getattr(limit, name) for name in TERMS},
        )
        LimitUse.objects.filter(limit=limit).delete()
        limit.delete()
        _bring_along(limit)


def _bring_along(limit: Limit) -> None:
    """Have Kueue's objects follow, and what the policies read of the quota in the team's projects."""
    projects = Project.objects.filter(team=limit.team_id, archived_at=None).values_list("slug", flat=True)
    workqueue.mark(targets.PLATFORM, *(targets.project(slug) for slug in projects))


def set_policy(
    actor: str,
    holder: Department | Team,
    *,
    weight: Decimal = Decimal(1),
    reclaim: str = Reclaim.ANY,
    within: str = Within.NEVER,
) -> QueuePolicy:
    """How `holder` competes for what others lend. Raises Invalid."""
    errors = {}
    if not 0 <= weight <= MAX_UNITS or weight.as_tuple().exponent < -3:  # type: ignore[operator]
        errors["weight"] = [f"Give a number from 0 to {MAX_UNITS} with at most three decimals."]
    if reclaim not in Reclaim.values:
        errors["reclaim"] = [f"Use one of {', '.join(Reclaim.values)}."]
    if within not in Within.values:
        errors["within"] = [f"Use one of {', '.join(Within.values)}."]
    if isinstance(holder, Department):  # a Cohort of Kueue has no preemption policy, its queues have
        for name, value, only in (("reclaim", reclaim, Reclaim.ANY), ("within", within, Within.NEVER)):
            if name not in errors and value != only:
                errors[name] = [f"A department has a weight alone; set {name} for its teams."]
    if errors:
        raise Invalid(errors)
    terms: dict[str, Any] = {"weight": weight, "reclaim": reclaim, "within": within}
    with transaction.atomic(), advisory_lock("limits"):
        known = QueuePolicy.objects.select_for_update(of=("self",)).filter(**who(holder)).first()
        row = known or QueuePolicy(**who(holder))
        before = {name: str(getattr(row, name)) for name in terms} if row.pk else None
        for name, value in terms.items():
            setattr(row, name, value)
        row.save()
        audit(
            actor,
            "queue_policy.set",
            holder.slug,
            team=whose(holder)[0],
            before=before,
            after={name: str(value) for name, value in terms.items()},
        )
        workqueue.mark(targets.PLATFORM)
    return row


def who(holder: Holder) -> dict[str, Any]:
    """Fields that name the holder; a member is a person in a team."""
    match holder:
        case Membership():
            return {"team": holder.team, "user": holder.user}
        case Team():
            return {"team": holder}
        case Project():
            return {"project": holder}
        case Department():
            return {"department": holder}


def whose(holder: Holder) -> tuple[str, str]:
    """Slugs of the team and the project that an audit entry about `holder` names; a department's is the platform's."""
    match holder:
        case Membership():
            return holder.team.slug, ""
        case Team():
            return holder.slug, ""
        case Project():
            return holder.team.slug, holder.slug
        case Department():
            return "", ""


def what(scope: Scope) -> dict[str, Any]:
    """Fields that name what is limited."""
    match scope:
        case Pool():
            return {"pool": scope}
        case Offering():
            return {"offering": scope}
        case Flavor():
            return {"flavor": scope}
        case None:
            return {}


def parties(row: Limit) -> tuple[Holder, Scope]:
    """Holder and scope of a row, as `set_limit` takes them."""
    holder: Holder | None = row.project or row.team or row.department
    if row.user and row.team:
        holder = Membership(user=row.user, team=row.team)
    if holder is None:
        raise Invalid({"team": ["Say whose limit it is: a department, a team, a project or a member."]})
    return holder, row.pool or row.offering or row.flavor


def key(row: Limit) -> dict[str, Any]:
    """Fields by which a limit is found again."""
    names = ("department", "team", "project", "user", "pool", "offering", "flavor")
    return {name: getattr(row, name) for name in names}


def _check(row: Limit) -> None:
    errors: dict[str, list[str]] = {}
    for name in TERMS:
        value = getattr(row, name)
        if not (value is None and name != "nominal") and not 0 <= value <= MAX_UNITS:
            errors[name] = [f"Give a whole number from 0 to {MAX_UNITS}."]
    if not row.kept_by_kueue and (row.borrowing, row.lending) != (0, None):
        errors["borrowing"] = ["Only departments and teams lend and borrow, and only of a pool."]
    if errors:
        raise Invalid(errors)
