"""Requests with a custom claim: parse it, check permission, count it, and test whether it can be satisfied.

The row stores the person's document and, under ``built``, what was made of it: the ResourceClaim's spec, which is
immutable in the cluster, and the units of its lease and its node share, which must not change with the fleet.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from allocations.capacity import device_inventory
from allocations.capacity.quota_usage import PoolRequest, QuotaUsage
from allocations.claims import diagnostics, fit, memory_parts, spec, units
from allocations.claims.device_index import DeviceIndex
from allocations.claims.fit import Fleet
from allocations.claims.model import Claim
from allocations.claims.parse import MAX_CEL_LENGTH, parse
from allocations.claims.units import DeviceDemand, Uncountable
from allocations.cluster import dry_run
from allocations.domain.admission import AdmissionInput
from allocations.domain.allocation_spec import AllocationSpec
from allocations.domain.custom_claim import BuiltClaim, CustomClaim
from allocations.requests import rules
from portal.core.errors import Forbidden, Invalid, Refused, Violation
from portal.tenants import access
from portal.tenants.models import Project, Team, User
from quotas.catalog.models import Kind, Offering

MAX_RECORDED = 128 * 1024
"""Maximum length of a claim and its spec in the lease's annotations; Kubernetes allows 256 KiB of annotations."""


@dataclass(frozen=True)
class PreparedClaim:
    """A parsed claim.

    ``stored`` is for the row, ``demand`` is the most that the claim can take, ``infeasible`` is why it cannot be
    satisfied even if all devices are free, or why the scheduler would not find them in time, ``devices`` are all of the
    flavor, ``available`` those on nodes that have room for it.
    """

    stored: CustomClaim
    demand: DeviceDemand
    infeasible: diagnostics.Infeasible | None
    claim: Claim
    devices: DeviceIndex
    available: Fleet

    def matches(self) -> list[int]:
        """Return how many devices meet each request or alternative, in order; raw CEL, which may exclude some, and what
        is in use are ignored.
        """
        return [self.devices.count(choice) for choice in self.claim.choices]

    def fits_now(self) -> bool:
        """Return whether devices are free for the claim, and the scheduler finds them in few steps; a search."""
        return fit.is_schedulable(self.claim, self.available)


def prepare(user: User, project: Project, offering: Offering, document: Mapping[str, Any]) -> PreparedClaim:
    """Parse, check and count a claim.

    Raises Invalid (by field), Forbidden (fields for operators only), Refused (it cannot be counted, or there are no
    devices).
    """
    inventory = device_inventory.of_flavor(offering.flavor)
    if not inventory.schema.products:
        raise Refused(
            "never_fits",
            f"No device of {offering.flavor.name} is published now.",
            "Ask again when its nodes are back, or choose another flavor.",
        )
    claim = parse(document, inventory.schema)
    _check_permission(user, project, claim)
    _check_sharing(claim, offering, inventory.schema.shareable)
    devices = DeviceIndex(inventory.fleet.devices)
    try:
        demand = units.max_demand(claim, devices, inventory.demands)
    except Uncountable as error:
        raise Refused("count_invalid", f"{error.path}: {error.detail}", error.hint) from error
    built = spec.build(claim, inventory.schema.products)
    _check_length(claim, document, built)
    if claim.has_raw_cel:
        _validate_cel(claim, project, built)
    part = memory_parts.min_memory_part(claim, devices, inventory.demands)
    stored = CustomClaim(document, BuiltClaim(built, demand.amounts, demand.share, part))
    return PreparedClaim(
        stored,
        demand,
        diagnostics.infeasible(claim, inventory.fleet),
        claim,
        devices,
        inventory.available(part),
    )


def _check_permission(user: User, project: Project, claim: Claim) -> None:
    if not (claim.has_raw_cel or claim.has_admin_access):
        return
    field = "cel" if claim.has_raw_cel else "admin_access"
    if not access.can(user, "claim.raw", None):
        raise Forbidden(
            "operator",
            detail=f"{field} is for operators only.",
            hint="Say it with attributes and capacities; GET /offerings/{id}/device-schema lists them.",
        )
    if claim.has_admin_access and not project.admin_access:
        raise Refused(
            "wrong_phase",
            f"The project {project.slug} is not marked for admin access.",
            "Mark it in the admin (admin access), or ask in a project that is.",
        )


def _check_sharing(claim: Claim, offering: Offering, is_shareable: bool) -> None:
    """Raise Invalid for MPS with dynamic MIG or consumable shares, which NVIDIA's driver refuses to prepare."""
    if not (offering.flavor.partitionable or is_shareable):
        return
    error = "The DRA driver has no MPS where it cuts GPUs on demand or shares them. Use strategy TimeSlicing."
    wrong = [index for index, each in enumerate(claim.config) if each.sharing and each.sharing.strategy == "MPS"]
    if wrong:
        raise Invalid({f"claim.config[{index}].sharing.strategy": [error] for index in wrong})


def _check_length(claim: Claim, document: Mapping[str, Any], built: Mapping[str, Any]) -> None:
    """Raise Invalid if a CEL expression or the record in the lease's annotation is too long for the API server."""
    for request, spec_request in zip(claim.requests, built["devices"]["requests"], strict=True):
        requested = spec_request.get("firstAvailable") or [spec_request["exactly"]]
        for choice, device_request in zip(request.choices, requested, strict=True):
            if any(len(each["cel"]["expression"].encode()) > MAX_CEL_LENGTH for each in device_request["selectors"]):
                raise Invalid({choice.path: ["Too much is compared here. Give fewer or shorter values."]})
    if len(json.dumps([document, built])) > MAX_RECORDED:
        raise Invalid({"claim": [f"It is too long. Say it in less than {MAX_RECORDED // 1024} KiB, CEL included."]})


def _validate_cel(claim: Claim, project: Project, built: Mapping[str, Any]) -> None:
    """Have the API server validate an operator's CEL in a dry run. Raises Invalid by field."""
    refused_fields = dry_run.validate_claim(project.cluster_id, project.namespace, built)
    errors: dict[str, list[str]] = {}
    for field, sentence in refused_fields:
        errors.setdefault(_path(claim, field), []).append(sentence)
    if errors:
        raise Invalid(errors)


def _path(claim: Claim, field: str) -> str:
    """Return the path in the person's document for a path in the spec."""
    location = dry_run.locate(field)
    if location is None or location.request >= len(claim.requests):
        return "claim"
    request = claim.requests[location.request]
    choice = request.choices[location.choice if request.is_list else 0]
    first = 1 + len(choice.conditions)  # the product, then the conditions
    if location.selector is None or location.selector < first:
        return choice.path
    return f"{choice.path}.cel[{location.selector - first}]"


def requested_document(stored: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the claim as the person wrote it, or None if the row has no claim."""
    claim = CustomClaim.of_column(stored)
    return None if claim is None else dict(claim.document)


def violations(
    quotas: QuotaUsage, project: Project, request: AdmissionInput, offering: Offering, prepared: PreparedClaim
) -> list[Violation]:
    """Return why the claim can never be held: hidden offering, missing devices, too many combinations of them, or the
    team's quota of a pool.
    """
    found = rules.violations(request, (rules.offering_is_hidden, *rules.LIMITS))
    if infeasible := prepared.infeasible:
        found.append(
            Violation(
                infeasible.reason,
                f"node:{offering.key}",
                infeasible.max_count,
                0,
                infeasible.requested,
                f"{infeasible.path}: {infeasible.detail}",
                infeasible.hint,
            )
        )
    parts = quotas.of_claim(project.team, offering, prepared.demand.amounts)
    return found + [_over_quota(project.team, part) for part in parts if part.requested > part.limit]


def _over_quota(team: Team, part: PoolRequest) -> Violation:
    is_own = part.bound is not None and part.bound < part.requested
    holder, limit = ("team", part.bound or 0) if is_own else ("department", part.limit)
    return Violation(
        "quota_exceeded",
        f"{holder}:{part.pool}",
        limit,
        min(part.used, limit),
        part.requested,
        f"Team {team.slug} may hold {limit} of {part.pool} at once, and the claim can take {part.requested}: the lease "
        "counts the largest devices that meet it.",
        f"Ask for fewer or smaller devices, or have an operator raise the {holder}'s limit.",
    )


def fits(
    quotas: QuotaUsage, project: Project, offering: Offering, prepared: PreparedClaim, exceeded: list[Violation]
) -> str:
    """Return ``never`` if there is a violation, ``now`` if devices and quota are free, else ``queue``."""
    if exceeded:
        return "never"
    parts = quotas.of_claim(project.team, offering, prepared.demand.amounts)
    is_free = all(part.used + part.requested <= part.limit for part in parts) and prepared.fits_now()
    return "now" if is_free else "queue"


def problems(offering: Offering, spec: AllocationSpec) -> dict[str, list[str]]:
    """Return the errors of a request by field: values that do not fit the offering's kind."""
    if offering.kind != Kind.CLAIM:
        sentence = f"It goes with an offering of kind claim, such as {offering.flavor.name}/claim."
        return {} if spec.claim is None else {"claim": [sentence]}
    errors: dict[str, list[str]] = {}
    if spec.claim is None:
        errors["claim"] = ['Say which devices you need: {"requests": [{"device": "gpu", "count": 1}]}.']
    if spec.count != 1:
        errors["count"] = ["The claim itself says how many devices; leave count out."]
    if spec.constraints:
        errors["constraints"] = ["The claim has constraints of its own; say it there."]
    return errors
