"""Decides a request: who may ask for what, and whether rules and limits allow it.

A request is decided under the locks of its limits, so only what decides is read here. What it costs and what would fit
instead is for people to read (``allocations.requests.preview``).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from allocations.capacity import allocation_limits
from allocations.capacity.allocation_limits import ApplicableLimits
from allocations.capacity.headroom import Availability
from allocations.capacity.offering_index import OfferingIndex
from allocations.cluster import names
from allocations.domain.admission import PRIORITIES, AllocationLimit
from allocations.domain.allocation_spec import MAX_SLICES, AllocationRequest
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.documents import fields_of
from allocations.requests import custom_claims, period, rules, validation
from allocations.requests.period import Period
from portal.core import clock
from portal.core.errors import Forbidden, Invalid, NotVisible, Violation
from portal.tenants import access
from portal.tenants.models import Project, User
from quotas.catalog.models import Offering
from quotas.limits import counting
from quotas.limits.models import Limit


@dataclass(frozen=True)
class Decision:
    """Whether a request may be made ``at`` this time: it may unless there are ``violations``.

    ``fits`` is now, queue or never. ``claim`` is the custom claim as stored in the row. ``demand`` counts against
    ``limits``, the limits that the portal enforces itself. ``availability`` and ``number_limits`` are what was read to
    decide; ``applying_limits`` are the ``number_limits`` for a start now, or for a later one.
    """

    project: Project
    offering: Offering
    spec: AllocationRequest
    at: datetime
    period: Period
    fits: str
    violations: list[Violation]
    claim: CustomClaim | None
    demand: counting.ResourceDemand
    availability: Availability
    number_limits: ApplicableLimits
    applying_limits: tuple[AllocationLimit, ...]

    @property
    def limits(self) -> list[Limit]:
        return self.availability.limits.rows


def decide(user: User, spec: AllocationRequest) -> Decision:
    """Return whether the request may be made; write nothing.

    Raises Invalid, NotVisible, Forbidden; Refused for a custom claim that cannot be counted.
    """
    project = access.project_for(user, spec.project)
    access.require(user, "allocation.request", project.team)
    index = OfferingIndex()
    offering = _offering(index, project, spec.offering)
    now = clock.now()
    span = _period(spec, now)
    _validate(user, project, offering, spec)
    availability = Availability(
        [project.team], user=user, project=project, cliques=spec.constraints.same_clique, index=index
    )
    number_limits = allocation_limits.applicable_limits(project, user)
    applying = number_limits.scheduled if span.starts_at else number_limits.live
    claim = custom_claims.prepare(user, project, offering, spec.claim.document) if spec.claim is not None else None
    claim_demand = index.demand_of_claim(offering, claim.demand.amounts, claim.demand.share) if claim else None
    admission_input = availability.admission_input(
        project,
        offering,
        spec.count,
        allocation_limits=applying,
        spread=spec.constraints.spread,
        constraints=spec.constraints.names,
        per_slice=claim_demand,
    )
    if claim is None:
        violations = rules.violations(admission_input)
        fits = rules.fits(admission_input)
    else:
        violations = custom_claims.violations(availability.quotas, project, admission_input, offering, claim)
        fits = custom_claims.fits(availability.quotas, project, offering, claim, violations)
    return Decision(
        project=project,
        offering=offering,
        spec=spec,
        at=now,
        period=span,
        fits=fits,
        violations=violations,
        claim=None if claim is None else claim.stored,
        demand=claim_demand or counting.demand(offering, spec.count),
        availability=availability,
        number_limits=number_limits,
        applying_limits=applying,
    )


def _offering(index: OfferingIndex, project: Project, key: str) -> Offering:
    row = index.get(key)
    if row is None:
        raise NotVisible(f"The offering {key}", hint="GET /offerings lists what is offered.")
    if (cluster := row.flavor.cluster_id) != project.cluster_id:
        raise Invalid({"offering": [f"It is in cluster {cluster}; {project.slug} is in {project.cluster_id}."]})
    return row


def _period(spec: AllocationRequest, now: datetime) -> Period:
    span = period.period(
        now,
        settings.DEFAULT_HOURS,
        timedelta(hours=settings.GIVE_UP_AFTER_HOURS),
        hours=spec.hours,
        starts_at=spec.starts_at,
        ends_at=spec.ends_at,
        give_up_at=spec.give_up_at,
        give_up_after=spec.give_up_after,
    )
    if isinstance(span, dict):
        raise Invalid(span, reason="time_invalid")
    return span


def _validate(user: User, project: Project, offering: Offering, spec: AllocationRequest) -> None:
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
