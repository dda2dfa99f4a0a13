"""Write operations on allocations: request, release, extend, retry; and the preview of a request.

Each checks permission, decides, writes intent with its Transition, and enqueues what has to be reconciled, in one
transaction. Nothing here calls the cluster, except to validate an operator's own CEL
(``allocations.requests.custom_claims``).
"""

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from django.conf import settings
from django.db import IntegrityError, transaction

from allocations.capacity import allocation_limits
from allocations.capacity.headroom import Availability
from allocations.cluster import names
from allocations.domain.admission import PRIORITIES
from allocations.domain.allocation_spec import MAX_SLICES, AllocationRequest
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.documents import fields_of
from allocations.domain.isolation import Isolation
from allocations.domain.phases import Ending, Phase
from allocations.lifecycle import slot_numbers, spec_of_row, transitions
from allocations.models import Allocation
from allocations.requests import advice, alternatives, custom_claims, forecast, isolation, rules, validation
from allocations.requests.alternatives import Alternative, AlternativesQuery
from allocations.requests.audit import record_action, request_values
from portal.core import clock, money
from portal.core.errors import Busy, Forbidden, Invalid, NotVisible, Refused, Violation
from portal.core.locks import advisory_lock
from portal.tenants import access
from portal.tenants.models import Project, User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog.models import Offering
from quotas.costs import selectors as costs
from quotas.limits import counting
from quotas.limits.models import Limit

MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Advised:
    """Of a request that is allowed. ``alternative`` is what would serve it better, None where nothing is to be had."""

    reason: str
    detail: str
    hint: str
    alternative: Alternative | None


@dataclass(frozen=True)
class Preview:
    """What a request would get and cost. ``price_per_hour`` and ``price_total`` are exact, None without a price; those
    of a ``claim`` are of the most it can take. The claim is as the row keeps it (``custom_claims``); ``demand`` is what
    counts against ``limits``, which the portal keeps itself."""

    project: Project
    offering: Offering
    spec: AllocationRequest
    starts_at: datetime | None
    ends_at: datetime
    fits: str
    violations: list[Violation]
    price_per_hour: Fraction | None
    price_total: Fraction | None
    currency: str
    isolation: Isolation
    demand: counting.ResourceDemand
    limits: list[Limit]
    alternatives: list[Alternative] = field(default_factory=list)
    warnings: list[Advised] = field(default_factory=list)
    claim: CustomClaim | None = None


def preview(user: User, spec: AllocationRequest) -> Preview:
    """What the request would get and cost, by the rules of ``request``. Raises Invalid, NotVisible, Forbidden."""
    project = access.project_for(user, spec.project)
    access.require(user, "allocation.request", project.team)
    offering = _offering(project, spec.offering)
    now = clock.now()
    span = _period(spec, now)
    _check(user, project, offering, spec)
    availability = Availability([project.team], user=user, project=project, cliques=spec.constraints.same_clique)
    bounds = allocation_limits.applicable_limits(project, user)
    applying = bounds.scheduled if span.starts_at else bounds.live
    own = custom_claims.prepare(user, project, offering, spec.claim.document) if spec.claim is not None else None
    of_claim = availability.index.demand_of_claim(offering, own.demand.amounts, own.demand.share) if own else None
    asked_for = availability.admission_input(
        project,
        offering,
        spec.count,
        allocation_limits=applying,
        spread=spec.constraints.spread,
        constraints=spec.constraints.names,
        per_slice=of_claim,
    )
    if own is None:
        found = rules.violations(asked_for)
    else:
        found = custom_claims.violations(availability.quotas, project, asked_for, offering, own)
    hours = money.hours(Fraction((span.ends_at - (span.starts_at or now)) // MICROSECOND, 10**6))
    apart = isolation.requested(offering, spec.sharing, spec.claim)
    warned = advice.warnings(offering.key, *apart, spec.count, hours, spec.purpose)
    prices = costs.prices_per_hour(availability.fleet.offerings(), now)
    query = AlternativesQuery(
        project, offering, spec.count, hours, applying, spec.constraints.spread, spec.constraints.names
    )
    better = (
        alternatives.ranked(availability, query, alternatives.isolated(availability.fleet, offering), prices)[:1]
        if warned
        else []
    )
    price = prices.get(offering.key)
    if price is not None:
        price *= spec.count if own is None else own.demand.share
    fits = (
        rules.fits(asked_for) if own is None else custom_claims.fits(availability.quotas, project, offering, own, found)
    )
    instead = alternatives.stand_ins(availability.fleet, offering) if fits != "now" and own is None else []
    others = alternatives.ranked(availability, query, instead, prices, at_once=fits == "queue")
    is_schedulable = span.starts_at is None and not any(one.is_full for one in bounds.scheduled)
    if fits == "queue" and own is None and is_schedulable:
        freed = forecast.earliest_fit(availability, project.team, offering, spec.count, forecast.expected_releases(now))
        others += [alternatives.scheduled(query, freed.at, prices)] if freed else []
    return Preview(
        project=project,
        offering=offering,
        spec=spec,
        starts_at=span.starts_at,
        ends_at=span.ends_at,
        fits=fits,
        violations=found,
        price_per_hour=price,
        price_total=None if price is None else price * hours,
        currency=costs.currency(),
        alternatives=others,
        warnings=[Advised(**vars(one), alternative=better[0] if better else None) for one in warned],
        isolation=apart,
        claim=None if own is None else own.stored,
        demand=of_claim or counting.demand(offering, spec.count),
        limits=availability.limits.rows,
    )


def request(user: User, spec: AllocationRequest, *, actor: str = "") -> Allocation:
    """Make an allocation of the request, queued or scheduled, and return it.

    Raises Invalid (400), NotVisible (404), Forbidden (403), Refused (409, with the limits exceeded and alternatives).
    """
    with (
        transaction.atomic(),
        advisory_lock("limits", shared=True),  # a limit that comes meanwhile would miss this allocation
        advisory_lock("live", spec.project),  # two at once would each find room for one
    ):
        seen = preview(user, spec)
        if seen.project.archived_at is not None:
            raise Refused("wrong_phase", f"The project {spec.project} is archived.", "Ask in a project that is in use.")
        if seen.violations:
            raise refusal(seen)
        row = _create(user, seen)
        try:
            counting.grant(row.pk, seen.limits, seen.demand)
        except counting.LimitReached as error:  # another project of the same member or team was faster
            again = preview(user, spec)
            raise refusal(again) if again.violations else Busy("Others ask for the same just now.") from error
        transitions.append(row, "requested", actor=actor or user.username, to_phase=row.phase, message=_sentence(seen))
        record_action(actor or user.username, "request", row, after=request_values(row))
        workqueue.enqueue(targets.allocation(row.project.cluster_id, row.pk), at=row.starts_at)
    return row


def refusal(seen: Preview) -> Refused:
    first = seen.violations[0]
    return Refused(
        first.reason,
        first.detail,
        first.hint,
        violations=seen.violations,
        alternatives=[alternative.document() for alternative in seen.alternatives],
    )


def release(user: User, row: Allocation, reason: str = "") -> Allocation:
    """Give the slices back. Releasing what is ending or ended already changes nothing."""
    access.require(user, "allocation.release", row.project.team, row.requested_by)
    with transaction.atomic():
        before = {"desired": row.desired}
        if transitions.end(row, Ending.PERSON, "released", reason or "Released by a person.", actor=user.username):
            record_action(
                user.username, "release", row, before=before, after={"desired": row.desired, "reason": reason}
            )
            cluster = row.project.cluster_id
            workqueue.enqueue(targets.allocation(cluster, row.pk), targets.project(cluster, row.project.slug))
    return row


def extend(user: User, row: Allocation, hours: Decimal) -> Allocation:
    """Let the allocation end later by so many hours. Raises Refused (wrong_phase) when it is ending or ended."""
    access.require(user, "allocation.extend", row.project.team, row.requested_by)
    if not 0 < hours <= rules.MAX_DURATION.days * 24:
        raise Invalid(
            {"hours": [f"Give a number above 0, at most {rules.MAX_DURATION.days * 24}."]}, reason="time_invalid"
        )
    with transaction.atomic():
        locked = Allocation.objects.select_for_update().get(pk=row.pk)
        if locked.desired == Allocation.Desired.RELEASED:
            raise Refused("wrong_phase", f"{row.name} is {locked.phase}; it cannot be extended.", "Ask for a new one.")
        ends_at = locked.ends_at + timedelta(hours=float(hours))
        if ends_at - clock.now() > rules.MAX_DURATION:
            raise Invalid(
                {"hours": [f"It may end at most {rules.MAX_DURATION.days} days from now."]}, reason="time_invalid"
            )
        Allocation.objects.filter(pk=row.pk).update(ends_at=ends_at)
        message = f"Ends at {ends_at:%Y-%m-%d %H:%M} UTC instead of {locked.ends_at:%Y-%m-%d %H:%M} UTC."
        transitions.append(locked, "extended", actor=user.username, reason="extended", message=message)
        record_action(user.username, "extend", row, before={"ends_at": locked.ends_at}, after={"ends_at": ends_at})
        workqueue.enqueue(targets.allocation(row.project.cluster_id, row.pk))
    row.refresh_from_db()
    return row


def retry(user: User, row: Allocation) -> Allocation:
    """Let an allocation whose start failed too often queue again. Raises Refused (wrong_phase) when it does not ask."""
    access.require(user, "allocation.release", row.project.team, row.requested_by)
    with transaction.atomic():
        changed = Allocation.objects.filter(pk=row.pk, needs_attention=True, desired=Allocation.Desired.HELD).update(
            needs_attention=False, start_failures=0, not_before=None
        )
        if not changed:
            raise Refused("wrong_phase", f"{row.name} does not wait for an answer.", "Nothing is to be done.")
        transitions.append(row, "retried", actor=user.username, reason="retried", message="Queues again.")
        record_action(
            user.username, "retry", row, before={"start_failures": row.start_failures}, after={"start_failures": 0}
        )
        workqueue.enqueue(targets.allocation(row.project.cluster_id, row.pk))
    row.refresh_from_db()
    return row


def _offering(project: Project, key: str) -> Offering:
    row = Offering.objects.select_related("flavor", "pool__use").filter(key=key).first()
    if row is None:
        raise NotVisible(f"The offering {key}", hint="GET /offerings lists what is offered.")
    if (there := row.flavor.cluster_id) != project.cluster_id:
        raise Invalid({"offering": [f"It is in cluster {there}; {project.slug} is in {project.cluster_id}."]})
    return row


def _period(spec: AllocationRequest, now: datetime) -> rules.Period:
    span = rules.period(now, settings.DEFAULT_HOURS, hours=spec.hours, starts_at=spec.starts_at, ends_at=spec.ends_at)
    if isinstance(span, dict):
        raise Invalid(span, reason="time_invalid")
    return span


def _check(user: User, project: Project, offering: Offering, spec: AllocationRequest) -> None:
    errors: dict[str, list[str]] = validation.problems(offering, spec)
    errors |= custom_claims.problems(offering, spec)
    if not 1 <= spec.count <= MAX_SLICES:
        errors["count"] = [f"Give a whole number from 1 to {MAX_SLICES}."]
    if spec.mode != "hold":
        errors["mode"] = [f"'{spec.mode}' is not offered; use 'hold'."]
    if spec.priority not in PRIORITIES:
        errors["priority"] = [f"Use one of {', '.join(PRIORITIES)}."]
    if spec.name and not names.is_allocation_name(spec.name):
        errors["name"] = [
            f"Use lower-case letters, digits and hyphens, at most {names.ALLOCATION_MAX}, no hyphen at either end."
        ]
    for each in fields_of(AllocationRequest):
        if each.info.max_length is not None and len(getattr(spec, each.name)) > each.info.max_length:
            errors[each.name] = [f"Use at most {each.info.max_length} characters."]
    if errors:
        raise Invalid(errors, reason="count_invalid" if "count" in errors else "invalid")
    if spec.priority == "critical" and not access.can(user, "allocation.approve", project.team):
        raise Forbidden("lead", detail="Priority critical needs the role lead in the team.", hint="Use normal.")


def draft(user: User, seen: Preview) -> Allocation:
    """The row that the request would become, not written; named as given, or with a name made for it."""
    now = clock.now()
    name = seen.spec.name or names.suggest(seen.spec.offering, secrets.token_hex(3))
    spec = seen.spec.to_spec(name=name, starts_at=seen.starts_at, ends_at=seen.ends_at, claim=seen.claim)
    return Allocation(
        project=seen.project,
        offering=seen.offering,
        requested_by=user,
        created_at=now,
        **spec_of_row.columns(spec),
        phase=Phase.SCHEDULED.value if seen.starts_at else Phase.QUEUED.value,
        phase_since=now,
        phase_until=seen.starts_at,
    )


def _create(user: User, seen: Preview) -> Allocation:
    row = draft(user, seen)
    row.number = None if row.starts_at else slot_numbers.free(seen.project)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        if "allocation_name_unique_in_project" not in str(error):
            raise
        raise Refused(
            "name_taken",
            f"The project {seen.spec.project} has, or had, an allocation named {row.name}.",
            "Choose another name, or leave it out and one is made.",
        ) from error
    return row


def _sentence(seen: Preview) -> str:
    spec = seen.spec
    return f"{spec.count} × {spec.offering} until {seen.ends_at:%Y-%m-%d %H:%M} UTC" + (
        f": {spec.purpose}" if spec.purpose else "."
    )
