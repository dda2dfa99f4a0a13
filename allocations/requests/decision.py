"""Decides a request: who may ask for what, and whether rules and limits allow it.

Three steps, so that locks are held no longer than needed: ``validate`` before the locks, with an operator's dry run of
a custom claim; ``decide`` under the locks of the request's limits; ``explain`` (``allocations.requests.preview``) what
people read beside it, outside the locks and only where it is shown.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from allocations.capacity.headroom import Availability
from allocations.capacity.offering_index import OfferingIndex
from allocations.cluster import names
from allocations.domain.admission import ALLOCATION_LIMITS, PRIORITIES, AdmissionInput
from allocations.domain.allocation_spec import MAX_SLICES, AllocationRequest
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.documents import fields_of
from allocations.lifecycle import slot_numbers
from allocations.lifecycle.modes.registry import MODES
from allocations.requests import custom_claims, fact_providers, period, rules, validation
from allocations.requests.custom_claims import PreparedClaim
from allocations.requests.fact_providers import Question
from allocations.requests.period import Period
from portal.core import clock
from portal.core.errors import Forbidden, Invalid, NotVisible, Retryable, Violation
from portal.core.quotation import named
from portal.core.reading import Batch, Columns
from portal.tenants import access
from portal.tenants.access import Permissions
from portal.tenants.models import Project, User
from quotas.catalog.models import Offering
from quotas.limits import counting
from quotas.limits.models import Limit


@dataclass(frozen=True)
class ValidRequest:
    """A request whose fields are valid, made by a person who may request in the project ``at`` this time.

    ``index`` has the offerings as they were read then.
    """

    user: User
    project: Project
    offering: Offering
    spec: AllocationRequest
    at: datetime
    period: Period
    prepared_claim: PreparedClaim | None
    index: OfferingIndex

    @property
    def claim(self) -> CustomClaim | None:
        """The custom claim as stored in the row."""
        return None if self.prepared_claim is None else self.prepared_claim.stored


@dataclass(frozen=True)
class Decision(ValidRequest):
    """Whether a request may be made: it may unless there are ``violations``.

    ``demand`` counts against ``limits``, the limits that the portal enforces itself. ``number`` is the smallest that is
    free in the project. ``admission_input`` and ``availability`` are what was read to decide.
    """

    is_archived: bool
    violations: list[Violation]
    demand: counting.ResourceDemand
    number: int
    admission_input: AdmissionInput
    availability: Availability

    @property
    def limits(self) -> list[Limit]:
        return self.availability.limits.rows


def validate(user: User, spec: AllocationRequest) -> ValidRequest:
    """Return the request with all that can be told of it without its limits; write nothing. One query, and four more
    for a custom claim.

    Raises Invalid, NotVisible, Forbidden; Refused for a custom claim that cannot be counted.
    """
    batch = Batch()
    projects = batch.add(access.project_named(user, spec.project))
    roles = batch.add(access.roles_in_teams(user))
    index = OfferingIndex(batch)
    if not projects():
        raise access.no_project(spec.project)
    (project,) = projects()
    permissions = Permissions(user, dict(roles()))
    permissions.require("allocation.request", project.team_id)
    offering = _offering(index, project, spec.offering)
    now = clock.now()
    span = _period(spec, now)
    _validate(offering, spec)
    claim = custom_claims.prepare(user, project, offering, spec.claim.document) if spec.claim is not None else None
    return ValidRequest(user, project, offering, spec, now, span, claim, index)


def decide(request: ValidRequest) -> Decision:
    """Return whether the request may be made; write nothing. One query, and one more for GPUs that are partitioned on
    demand, or three for constraints on devices.

    Raises Forbidden or NotVisible if the person lost the role meanwhile, Forbidden for a request that needs an approval
    and a person who may not give it, Retryable if the project was moved.
    """
    user, project, offering, spec = request.user, request.project, request.offering, request.spec
    batch = Batch()
    rows = Project.objects.filter(pk=project.pk).order_by()
    places = batch.add(Columns(rows, ("team_id", "team__department_id", "archived_at")))
    roles = batch.add(access.roles_in_teams(user))
    facts = fact_providers.add(rules.needed(), Question(user, project, request.period.starts_at), batch)
    availability = Availability(
        [project.team],
        user=user,
        project=project,
        cliques=spec.constraints.same_clique,
        index=request.index,
        batch=batch,
    )
    [place] = places()
    if (place.team_id, place.team__department_id) != (project.team_id, project.team.department_id):
        raise Retryable(f"the project {project.slug} was moved")
    permissions = Permissions(user, dict(roles()))
    permissions.require("allocation.request", place.team_id)
    claim = request.prepared_claim
    claim_demand = (
        request.index.demand_of_claim(offering, claim.demand.amounts, claim.demand.share) if claim is not None else None
    )
    admission_input = availability.admission_input(
        project,
        offering,
        spec.count,
        at=request.period.starts_at,
        facts=facts(),
        spread=spec.constraints.spread,
        constraints=spec.constraints.names,
        priority=spec.priority,
        per_slice=claim_demand,
    )
    approvals = rules.approvals(admission_input)
    if approvals and not permissions.can("allocation.approve", place.team_id):
        raise Forbidden(approvals[0].role, detail=approvals[0].detail, hint=approvals[0].hint)
    return Decision(
        **vars(request),
        is_archived=place.archived_at is not None,
        violations=rules.violations(admission_input)
        if claim is None
        else custom_claims.violations(availability.quotas, project, admission_input, offering, claim),
        demand=claim_demand or counting.demand(offering, spec.count),
        number=slot_numbers.smallest_free(admission_input.fact(ALLOCATION_LIMITS).numbers),
        admission_input=admission_input,
        availability=availability,
    )


def _offering(index: OfferingIndex, project: Project, key: str) -> Offering:
    row = index.get(key)
    if row is None:
        raise NotVisible(f"The offering {named(key)}", hint="GET /offerings lists what is offered.")
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


def _validate(offering: Offering, spec: AllocationRequest) -> None:
    errors: dict[str, list[str]] = validation.problems(offering, spec)
    errors |= custom_claims.problems(offering, spec)
    if not 1 <= spec.count <= MAX_SLICES:
        errors["count"] = [f"Give a whole number from 1 to {MAX_SLICES}."]
    if spec.mode not in MODES:
        errors["mode"] = [f"'{spec.mode}' is not offered; use {' or '.join(map(repr, MODES))}."]
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
