"""Several limits set in one transaction, exactly as they were previewed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils.crypto import constant_time_compare, salted_hmac

from allocations.limits import services as limit_services
from allocations.limits.services import Effect, LimitChange
from portal.core.errors import Invalid, Refused
from portal.core.locks import advisory_lock
from portal.tenants.models import Team, User
from quotas.catalog.models import Pool
from quotas.catalog.selectors import units
from quotas.limits import services
from quotas.limits.differences import Difference
from quotas.limits.models import Limit
from quotas.limits.selectors import QuotaSnapshot, name_of, quota_snapshot

MAX_CHANGES = 200
TOKEN_SALT = "allocations.limits.changes"  # noqa: S105 (names what the token is for)


@dataclass(frozen=True)
class PoolSum:
    """All guaranteed quotas of a pool together, in its units, beside the units on healthy devices now."""

    pool: Pool
    available: int
    before: int
    after: int

    @property
    def unit(self) -> str:
        return limit_services.unit(self.pool)

    @property
    def overcommitted(self) -> int:
        return max(0, self.after - self.available)


@dataclass(frozen=True)
class ChangesPreview:
    """The effect of several limits together. ``token`` lets the same person `apply` exactly these changes, while the
    limits are as they were; ``effects`` are in the order of the changes, ``pools`` those whose quotas change.
    """

    token: str
    effects: tuple[Effect, ...]
    pools: tuple[PoolSum, ...]
    objects: tuple[Difference, ...]


def preview(user: User, changes: Sequence[LimitChange]) -> ChangesPreview:
    """Return what `apply` would do; writes nothing. Raises NotVisible, Forbidden, Invalid."""
    rows = _checked(user, changes)
    known = limit_services.current(rows)
    return ChangesPreview(
        token=_token(user, changes, known),
        effects=tuple(limit_services.effects(changes, known)),
        pools=tuple(_pool_sums(changes)),
        objects=tuple(limit_services.kueue_changes(changes)),
    )


def apply(user: User, changes: Sequence[LimitChange], token: str) -> list[Limit]:
    """Set or remove all limits or none, and return them in the order of the changes.

    Raises Refused if ``token`` is not of a preview of exactly these changes, or if one of the limits has changed since
    then; and what `preview` raises.
    """
    rows = _checked(user, changes)
    with transaction.atomic(), advisory_lock("limits"):
        known = limit_services.current(rows)
        if not constant_time_compare(token, _token(user, changes, known)):
            raise Refused(
                "preview_outdated",
                "These are not the changes that were previewed, or a limit has changed since the preview.",
                "Nothing was changed. Preview the changes again.",
            )
        return [_apply(user, one, limit) for one, limit in zip(changes, known, strict=True)]


def _apply(user: User, change: LimitChange, known: Limit | None) -> Limit:
    if change.quota is not None:
        return limit_services.set_limit(user, change.holder, change.scope, change.quota)
    if known is not None:
        services.remove_limit(user, known)
    return change.row()


def copied(quotas: QuotaSnapshot, source: Team, target: Team, pools: Sequence[Pool]) -> list[LimitChange]:
    """Return the changes that give ``target`` the quotas that ``source`` has of the pools."""
    found = []
    for pool in pools:
        has, wanted = (quotas.quotas.get((name_of(team), pool.key)) for team in (target, source))
        if wanted is not None and wanted != has:
            found.append(LimitChange(target, pool, wanted))
    return found


def _checked(user: User, changes: Sequence[LimitChange]) -> list[Limit]:
    """Return the changes as rows that are not saved, of holders on whom the person may set limits."""
    if not 0 < len(changes) <= MAX_CHANGES:
        raise Invalid({"changes": [f"Give 1 to {MAX_CHANGES} changes; these are {len(changes)}."]})
    errors: dict[str, list[str]] = {}
    rows: dict[str, Limit] = {}
    for number, change in enumerate(changes):
        services.require(user, change.holder)
        row = change.row()
        try:
            services.check_amounts(row)
        except Invalid as problem:
            errors |= {f"changes.{number}.{field}": sentences for field, sentences in problem.errors.items()}
        name = f"{row.holder_kind} {row.holder} {row.scope}"
        if name in rows:
            errors[f"changes.{number}"] = [
                f"The limit of {row.holder_kind} {row.holder} for {row.scope} is here twice."
            ]
        rows[name] = row
    if errors:
        raise Invalid(errors)
    return list(rows.values())


def _token(user: User, changes: Sequence[LimitChange], known: Sequence[Limit | None]) -> str:
    """Return a signature of the person, the changes, and the limits as they are now."""
    content = sorted(
        [row.holder_kind, row.holder, row.scope_kind, row.scope, _amounts(row if one.quota else None), _amounts(before)]
        for one, before in zip(changes, known, strict=True)
        for row in (one.row(),)
    )
    return salted_hmac(TOKEN_SALT, json.dumps([user.pk, content]), algorithm="sha256").hexdigest()


def _amounts(row: Limit | None) -> list[int | None]:
    return [getattr(row, name) for name in services.AMOUNTS] if row else []


def _pool_sums(changes: Sequence[LimitChange]) -> list[PoolSum]:
    before = quota_snapshot()
    after = limit_services.with_changes(before, changes)
    rows = [change.row() for change in changes]
    pools = {row.pool.key: row.pool for row in rows if row.pool and row.is_enforced_by_kueue}
    return [
        PoolSum(pool, units(pool), allocated(before, key), allocated(after, key)) for key, pool in sorted(pools.items())
    ]


def allocated(quotas: QuotaSnapshot, pool: str) -> int:
    """Return the sum of all guaranteed quotas of the pool, in its units."""
    return sum(quota.nominal for (_, key), quota in quotas.quotas.items() if key == pool)
