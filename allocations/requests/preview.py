"""Previews a request: the decision, and what it would cost and what would fit instead."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Annotated

from allocations.domain.admission import ALLOCATION_LIMITS
from allocations.domain.allocation_spec import AllocationRequest
from allocations.domain.isolation import Isolation
from allocations.requests import advice, alternatives, custom_claims, forecast, isolation, rules
from allocations.requests.advice import WarningReason
from allocations.requests.alternatives import Alternative, AlternativesQuery
from allocations.requests.decision import Decision, decide, validate
from portal.tenants.models import User
from quotas.costs import selectors as costs


@dataclass(frozen=True)
class PreviewWarning:
    """A warning about an accepted request."""

    reason: WarningReason
    detail: str
    hint: str
    alternative: Annotated[Alternative | None, "An offering that suits it better."]


@dataclass(frozen=True)
class Preview(Decision):
    """A decision with what people read beside it. ``fits`` is now, queue or never. ``expected_start`` is when the
    slices are expected to be held: None if never, or if it is not known after which end enough is free.

    ``price_per_hour`` and ``price_total`` are exact; None if the offering has no price. The total is for all of the
    period, held to its end. Those of a custom claim are for the most that it can take.
    """

    fits: str
    expected_start: datetime | None
    price_per_hour: Fraction | None
    price_total: Fraction | None
    currency: str
    isolation: Isolation
    alternatives: list[Alternative]
    warnings: list[PreviewWarning]


def preview_request(user: User, spec: AllocationRequest) -> Preview:
    """Return what the request would get and cost; write nothing.

    Raises Invalid, NotVisible, Forbidden; Refused for a custom claim that cannot be counted.
    """
    return explain(decide(validate(user, spec)))


def explain(decision: Decision) -> Preview:
    """Return the decision with its price, warnings, whether it fits now, and what would fit instead or sooner."""
    offering, spec, span, availability = decision.offering, decision.spec, decision.period, decision.availability
    claim = decision.claim.built if decision.claim else None
    isolation_level = isolation.request_isolation(offering, spec.sharing, spec.claim)
    warnings = advice.warnings(offering.key, *isolation_level, spec.count, span.length, spec.purpose)
    prices, currency = costs.prices_with_currency(availability.fleet.offerings(), decision.at)
    query = AlternativesQuery(
        decision.project,
        offering,
        spec.count,
        span.length,
        decision.admission_input.at,
        decision.admission_input.facts,
        spec.constraints.spread,
        spec.constraints.names,
    )
    isolated = alternatives.isolated_offerings(availability.snapshot, offering) if warnings else []
    better = next(iter(alternatives.ranked_alternatives(availability, query, isolated, prices)), None)
    price = prices.get(offering.key)
    if price is not None:
        price *= spec.count if claim is None else claim.gpus
    fits = _fits(decision)
    start = _expected_start(decision, fits)
    return Preview(
        **vars(decision),
        fits=fits,
        expected_start=start,
        price_per_hour=price,
        price_total=None if price is None else price * span.length,
        currency=currency,
        isolation=isolation_level,
        alternatives=_alternatives(decision, fits, start, query, prices) if claim is None else [],
        warnings=[PreviewWarning(**vars(one), alternative=better) for one in warnings],
    )


def _fits(decision: Decision) -> str:
    request, offering, availability = decision.admission_input, decision.offering, decision.availability
    if decision.prepared_claim is None:
        return rules.fits(availability.with_free_devices(request, offering))
    claim, violations = decision.prepared_claim, decision.violations
    return custom_claims.fits(availability.quotas, decision.project, offering, claim, violations)


def _expected_start(decision: Decision, fits: str) -> datetime | None:
    """Return when the slices are expected to be held: at the requested start, at once, or once enough is released."""
    if fits == "never":
        return None
    if fits == "now" or decision.period.starts_at is not None:
        return decision.period.starts_at or decision.at
    if decision.claim is not None:
        return None
    releases = forecast.expected_releases(decision.at, decision.availability.index)
    found = forecast.earliest_fit(
        decision.availability, decision.project.team, decision.offering, decision.spec.count, releases
    )
    return found.at if found else None


def _alternatives(
    decision: Decision,
    fits: str,
    start: datetime | None,
    query: AlternativesQuery,
    prices: Mapping[str, Fraction],
) -> list[Alternative]:
    """Return other offerings that fit, and of a request that would queue when it is expected to fit."""
    if fits == "now":
        return []
    availability, offering = decision.availability, decision.offering
    would_queue = fits == "queue"
    candidates = alternatives.candidate_offerings(availability.snapshot, offering)
    others = alternatives.ranked_alternatives(availability, query, candidates, prices, fits_now=would_queue)
    scheduled = decision.admission_input.fact(ALLOCATION_LIMITS).scheduled
    is_schedulable = decision.period.starts_at is None and not any(one.is_full for one in scheduled)
    if would_queue and is_schedulable and start is not None:
        others.append(alternatives.scheduled_alternative(query, start, prices))
    return others
