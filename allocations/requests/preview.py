"""Previews a request: what it would get and cost, by the rules that a request is checked with."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction

from django.conf import settings

from allocations.capacity import allocation_limits
from allocations.capacity.headroom import Availability
from allocations.cluster import names
from allocations.domain.admission import PRIORITIES
from allocations.domain.allocation_spec import MAX_SLICES, AllocationRequest
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.documents import fields_of
from allocations.domain.isolation import Isolation
from allocations.requests import advice, alternatives, custom_claims, forecast, isolation, period, rules, validation
from allocations.requests.alternatives import Alternative, AlternativesQuery
from allocations.requests.period import Period
from portal.core import clock
from portal.core.errors import Forbidden, Invalid, NotVisible, Violation
from portal.tenants import access
from portal.tenants.models import Project, User
from quotas.catalog.models import Offering
from quotas.costs import selectors as costs
from quotas.limits import counting
from quotas.limits.models import Limit


@dataclass(frozen=True)
class PreviewWarning:
    """A warning about an accepted request. ``alternative`` is a better request, or None."""

    reason: str
    detail: str
    hint: str
    alternative: Alternative | None


@dataclass(frozen=True)
class Preview:
    """What a request would get and cost, if it were made ``at`` this time.

    ``price_per_hour`` and ``price_total`` are exact; None if the offering has no price. The total is for all of the
    period, held to its end. Those of a custom claim are for the most that it can take. ``claim`` is the claim as stored
    in the row (``custom_claims``). ``demand`` counts against ``limits``, the limits that the portal enforces itself.
    """

    project: Project
    offering: Offering
    spec: AllocationRequest
    at: datetime
    period: Period
    fits: str
    violations: list[Violation]
    price_per_hour: Fraction | None
    price_total: Fraction | None
    currency: str
    isolation: Isolation
    demand: counting.ResourceDemand
    limits: list[Limit]
    alternatives: list[Alternative] = field(default_factory=list)
    warnings: list[PreviewWarning] = field(default_factory=list)
    claim: CustomClaim | None = None


def preview_request(user: User, spec: AllocationRequest) -> Preview:
    """Return what the request would get and cost; write nothing.

    Raises Invalid, NotVisible, Forbidden; Refused for a custom claim that cannot be counted.
    """
    project = access.project_for(user, spec.project)
    access.require(user, "allocation.request", project.team)
    offering = _offering(project, spec.offering)
    now = clock.now()
    span = _period(spec, now)
    _validate(user, project, offering, spec)
    availability = Availability([project.team], user=user, project=project, cliques=spec.constraints.same_clique)
    number_limits = allocation_limits.applicable_limits(project, user)
    applying = number_limits.scheduled if span.starts_at else number_limits.live
    claim = custom_claims.prepare(user, project, offering, spec.claim.document) if spec.claim is not None else None
    claim_demand = (
        availability.index.demand_of_claim(offering, claim.demand.amounts, claim.demand.share) if claim else None
    )
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
    isolation_level = isolation.request_isolation(offering, spec.sharing, spec.claim)
    warnings = advice.warnings(offering.key, *isolation_level, spec.count, span.length, spec.purpose)
    prices = costs.prices_per_hour(availability.fleet.offerings(), now)
    query = AlternativesQuery(
        project, offering, spec.count, span.length, applying, spec.constraints.spread, spec.constraints.names
    )
    isolated = alternatives.isolated_offerings(availability.fleet, offering) if warnings else []
    better = next(iter(alternatives.ranked_alternatives(availability, query, isolated, prices)), None)
    price = prices.get(offering.key)
    if price is not None:
        price *= spec.count if claim is None else claim.demand.share
    candidates = []
    if fits != "now" and claim is None:
        candidates = alternatives.candidate_offerings(availability.fleet, offering)
    others = alternatives.ranked_alternatives(availability, query, candidates, prices, fits_now=fits == "queue")
    is_schedulable = span.starts_at is None and not any(one.is_full for one in number_limits.scheduled)
    if fits == "queue" and claim is None and is_schedulable:
        releases = forecast.expected_releases(now)
        release = forecast.earliest_fit(availability, project.team, offering, spec.count, releases)
        others += [alternatives.at_later_time(query, release.at, prices)] if release else []
    return Preview(
        project=project,
        offering=offering,
        spec=spec,
        at=now,
        period=span,
        fits=fits,
        violations=violations,
        price_per_hour=price,
        price_total=None if price is None else price * span.length,
        currency=costs.currency(),
        alternatives=others,
        warnings=[PreviewWarning(**vars(one), alternative=better) for one in warnings],
        isolation=isolation_level,
        claim=None if claim is None else claim.stored,
        demand=claim_demand or counting.demand(offering, spec.count),
        limits=availability.limits.rows,
    )


def _offering(project: Project, key: str) -> Offering:
    row = Offering.objects.select_related("flavor", "pool__use").filter(key=key).first()
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
