"""Write operations on limits and queue policies.

Operators set those of departments and teams, leads those of projects and members. A limit that the portal counts starts
with what its holder has: `allocations.limits.services` sets it with that.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db import transaction

from portal.audit.entries import audit
from portal.core.errors import Invalid
from portal.core.locks import RowLock, advisory_lock, unlocked
from portal.tenants import access
from portal.tenants.actors import Actor
from portal.tenants.models import Department, Membership, Project, Team, User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog.models import Flavor, Offering, Pool
from quotas.limits import counting, history, selectors
from quotas.limits.models import FRACTION_BASE, MAX_UNITS, Limit, LimitUse, QueuePolicy, Reclaim, Within
from quotas.limits.projection import DEFAULT_POLICY, Policy
from quotas.limits.tree import Quota

Holder = Department | Team | Project | Membership
Scope = Pool | Offering | Flavor | None
Uses = Iterable[tuple[UUID, counting.ResourceDemand]]
"""Demands of allocations, by their ids."""
AMOUNTS = ("nominal", "borrowing", "lending")


def require(actor: Actor, holder: Holder) -> None:
    """Raise Forbidden or NotVisible unless the actor may set limits on the holder."""
    match holder:
        case Department():
            access.require(actor, "limit.manage", None)
        case Team():
            access.require(actor, "limit.manage", holder)
        case Project() | Membership():
            access.require(actor, "limit.share", holder.team)


def get_to_change(user: User, id_: int) -> Limit:
    """Return the limit if the person may change it. Raises NotVisible, Forbidden."""
    row = selectors.visible_limit(user, id_)
    require(user, holder_and_scope(row)[0])
    return row


def policy_to_change(actor: Actor, holder: Department | Team) -> Policy:
    """Return the policy of the holder's queue, for a form that changes it. Raises Forbidden, NotVisible."""
    require(actor, holder)
    return selectors.policy_of(holder)


def set_limit(
    actor: Actor,
    holder: Holder,
    scope: Scope,
    nominal: int,
    *,
    borrowing: int | None = 0,
    lending: int | None = None,
    uses: Callable[[], Uses] = tuple,
) -> Limit:
    """Set what `holder` may have of `scope` (None: of all GPUs) at once to `nominal` units; the cluster follows.

    Nothing that is held ends, even beyond the new limit, but nothing more is granted. Of quota that Kueue enforces,
    what is borrowed then may be reclaimed, after a grace period, for the team that owns it. `uses` returns the demands
    of the holder's allocations, with which a new counted limit starts. Raises NotVisible, Forbidden, Invalid.
    """
    require(actor, holder)
    row = Limit(**holder_fields(holder), **scope_fields(scope), nominal=nominal, borrowing=borrowing, lending=lending)
    check_amounts(row)
    with transaction.atomic(), advisory_lock("limits"):
        known = Limit.objects.select_for_update(of=("self",)).filter(**lookup_fields(row)).order_by().first()
        before = None if known is None else {name: getattr(known, name) for name in AMOUNTS}
        after = {name: getattr(row, name) for name in AMOUNTS}
        if before == after and known is not None:
            return known
        if known is None:
            row.allowance = nominal * FRACTION_BASE
            row.save()
            if not row.is_enforced_by_kueue:
                counting.recount(row, uses())
        else:
            for name in AMOUNTS:
                setattr(known, name, getattr(row, name))
            known.allowance = max(nominal * FRACTION_BASE, known.used)
            known.save(update_fields=[*AMOUNTS, "allowance"])
            row = known
        team, project = audit_scope(holder)
        target = f"{row.holder}/{row.scope}"
        audit(actor.username, "limit.set", target, team=team, project=project, before=before, after=after)
        if row.is_enforced_by_kueue:
            history.record_quota(row, Quota(row.nominal, row.borrowing, row.lending))
            _enqueue_followers(row)
    return row


def remove_limit(actor: Actor, limit: Limit) -> None:
    """Remove a limit: of a Kueue quota the holder has nothing left; a counted limit no longer bounds.

    Raises NotVisible, Forbidden.
    """
    holder = holder_and_scope(limit)[0]
    require(actor, holder)
    team, project = audit_scope(holder)
    with transaction.atomic(), advisory_lock("limits"):
        audit(
            actor.username,
            "limit.remove",
            f"{limit.holder}/{limit.scope}",
            team=team,
            project=project,
            before={name: getattr(limit, name) for name in AMOUNTS},
        )
        if limit.is_enforced_by_kueue:
            history.record_quota(limit, Quota())
        LimitUse.objects.filter(limit=limit).delete()
        limit.delete()
        _enqueue_followers(limit)


def _enqueue_followers(limit: Limit) -> None:
    """Enqueue Kueue's objects, and the team's projects, whose policies read its quota: in the pool's cluster, or in all
    clusters if the limit has no pool.
    """
    projects, platforms = Project.objects.filter(team=limit.team_id, archived_at=None), targets.platforms()
    if limit.pool:
        projects = projects.filter(cluster=limit.pool.flavor.cluster_id)
        platforms = [targets.platform(limit.pool.flavor.cluster_id)]
    followers = [targets.project(cluster, slug) for cluster, slug in projects.values_list("cluster_id", "slug")]
    workqueue.enqueue(*platforms, *followers)


def set_policy(
    actor: Actor, holder: Department | Team, changes: Mapping[str, Any], lock: RowLock[Policy] = unlocked
) -> QueuePolicy:
    """Set how `holder` shares and preempts: the fields of a Policy that are in `changes`. Nothing is written if that is
    so, as by default: then the row has no id. Raises NotVisible, Forbidden, Invalid.
    """
    require(actor, holder)
    with transaction.atomic(), advisory_lock("limits"):
        known = QueuePolicy.objects.select_for_update(of=("self",)).filter(**holder_fields(holder)).first()
        row = known or QueuePolicy(**holder_fields(holder))
        current = lock(Policy(row.weight, row.reclaim, row.within) if known else DEFAULT_POLICY)
        policy = replace(current, **changes)
        check_policy(holder, policy)
        if policy == current:
            return row
        for name, value in changes.items():
            setattr(row, name, value)
        row.save()
        if policy.weight != current.weight:
            history.record_weight(row)
        audit(
            actor.username,
            "queue_policy.set",
            holder.slug,
            team=audit_scope(holder)[0],
            before={name: str(value) for name, value in vars(current).items()} if known else None,
            after={name: str(value) for name, value in vars(policy).items()},
        )
        workqueue.enqueue(*targets.platforms())
    return row


def check_policy(holder: Department | Team, policy: Policy) -> None:
    """Raise Invalid unless `holder` may share and preempt so."""
    errors, weight = {}, policy.weight
    if not 0 <= weight <= MAX_UNITS or weight.as_tuple().exponent < -3:  # type: ignore[operator]
        errors["weight"] = [f"Give a number from 0 to {MAX_UNITS} with at most three decimals."]
    if policy.reclaim not in Reclaim.values:
        errors["reclaim"] = [f"Use one of {', '.join(Reclaim.values)}."]
    if policy.within not in Within.values:
        errors["within"] = [f"Use one of {', '.join(Within.values)}."]
    if isinstance(holder, Department):  # a Cohort of Kueue has no preemption policy, its queues have
        for name, value, only in (("reclaim", policy.reclaim, Reclaim.ANY), ("within", policy.within, Within.NEVER)):
            if name not in errors and value != only:
                errors[name] = [f"A department has a weight alone; set {name} for its teams."]
    if errors:
        raise Invalid(errors)


def holder_fields(holder: Holder) -> dict[str, Any]:
    """Return the fields of a limit that name the holder; a member is a person in a team."""
    match holder:
        case Membership():
            return {"team": holder.team, "user": holder.user}
        case Team():
            return {"team": holder}
        case Project():
            return {"project": holder}
        case Department():
            return {"department": holder}


def audit_scope(holder: Holder) -> tuple[str, str]:
    """Return the slugs of team and project for an audit entry about `holder`; both are empty for a department."""
    match holder:
        case Membership():
            return holder.team.slug, ""
        case Team():
            return holder.slug, ""
        case Project():
            return holder.team.slug, holder.slug
        case Department():
            return "", ""


def scope_fields(scope: Scope) -> dict[str, Any]:
    """Return the fields of a limit that name its scope."""
    match scope:
        case Pool():
            return {"pool": scope}
        case Offering():
            return {"offering": scope}
        case Flavor():
            return {"flavor": scope}
        case None:
            return {}


def holder_and_scope(row: Limit) -> tuple[Holder, Scope]:
    """Return holder and scope of a row, as `set_limit` takes them."""
    holder: Holder | None = row.project or row.team or row.department
    if row.user and row.team:
        holder = Membership(user=row.user, team=row.team)
    if holder is None:
        raise Invalid({"team": ["Say whose limit it is: a department, a team, a project or a member."]})
    return holder, row.pool or row.offering or row.flavor


def lookup_fields(row: Limit) -> dict[str, Any]:
    """Return the fields that identify a limit."""
    names = ("department", "team", "project", "user", "pool", "offering", "flavor")
    return {name: getattr(row, name) for name in names}


def check_amounts(row: Limit) -> None:
    """Raise Invalid if an amount is out of range, or if the row lends or borrows and is not enforced by Kueue."""
    errors: dict[str, list[str]] = {}
    for name in AMOUNTS:
        value = getattr(row, name)
        if not (value is None and name != "nominal") and not 0 <= value <= MAX_UNITS:
            errors[name] = [f"Give a whole number from 0 to {MAX_UNITS}."]
    if not row.is_enforced_by_kueue and (row.borrowing, row.lending) != (0, None):
        errors["borrowing"] = ["Only departments and teams lend and borrow, and only of a pool."]
    if errors:
        raise Invalid(errors)
