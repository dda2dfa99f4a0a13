"""The admission rules of a request: an ordered list of functions. Pure.

A rule answers None if the request is fine, a Violation or several, or that it needs an approval. The first violation
is the reason of the refusal. Preview and request run the same list, so they agree. A request that passes may still
have to wait: Kueue admits it when quota and devices are free.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from allocations.domain.admission import ALLOCATION_LIMITS, AdmissionInput, AllocationLimit, Fact, NeedsApproval
from allocations.domain.backend_capabilities import CAPABILITIES
from portal.core.errors import Violation


def _on_one_node(request: AdmissionInput) -> bool:
    return CAPABILITIES[request.path].spreads_on_request and not request.spread


def _plural(count: int) -> str:
    return f"{count} slice" if count == 1 else f"{count} slices"


def _at_most(request: AdmissionInput, otherwise: str = "") -> str:
    """Return the hint with the largest count that would be accepted."""
    most = max_possible(request)
    return f"Ask for at most {most}{otherwise}." if most else "Choose another offering; GET /offerings lists them."


def offering_is_hidden(request: AdmissionInput) -> Violation | None:
    if not request.hidden:
        return None
    return Violation(
        "offering_hidden",
        f"capacity:{request.offering}",
        0,
        0,
        request.count,
        f"{request.offering} is not offered.",
        "GET /offerings lists what is.",
    )


def more_than_the_fleet(request: AdmissionInput) -> Violation | None:
    if request.count <= request.total:
        return None
    return Violation(
        "never_fits",
        f"capacity:{request.offering}",
        request.total,
        request.total - request.free,
        request.count,
        f"The fleet has {_plural(request.total)} of {request.offering} in all, and {request.count} were requested.",
        _at_most(request),
    )


def more_than_a_node(request: AdmissionInput) -> Violation | None:
    """Refuse more slices than a node has, since a claim is allocated on one node.

    With ``spread`` each slice has its own claim. A device plugin hold is a count that pods on several nodes may use.
    """
    if not _on_one_node(request) or request.count <= request.per_node or request.total == 0:
        return None
    most = max_possible(replace(request, spread=True))
    wider = f", or set constraints.spread for up to {most} on several nodes" if most > max_possible(request) else ""
    return Violation(
        "never_fits",
        f"node:{request.offering}",
        request.per_node,
        0,
        request.count,
        f"All slices of one allocation are on one node, and a node has at most {request.per_node} of "
        f"{request.offering}.",
        _at_most(request, wider),
    )


CONSTRAINT_PHRASES = {
    "same_gpu": "on one GPU",
    "same_pcie_root": "on GPUs of one PCIe root",
    "same_clique": "in one NVLink clique",
    "distinct_gpus": "on a GPU each",
}
"""Phrases for the constraints of a request, after "slices"."""


def constraint_needs_named_devices(request: AdmissionInput) -> Violation | None:
    backend = CAPABILITIES[request.path]
    if backend.takes_constraints or not request.constraints:
        return None
    return Violation(
        "never_fits",
        f"node:{request.offering}",
        0,
        0,
        request.count,
        f"With {backend.label} Kubernetes names no device, so {_listed(request)} cannot be guaranteed for "
        f"{request.offering}.",
        "Leave these constraints out, or request an offering of a DRA flavor (path dra in GET /offerings).",
    )


def constraint_never_holds(request: AdmissionInput) -> Violation | None:
    """Refuse constraints that no placement on an empty fleet satisfies."""
    if not request.constraints or request.max_colocated is None or request.count <= request.max_colocated:
        return None
    if request.max_colocated == 0:
        lacks = {"same_clique": "node has the label nvidia.com/gpu.clique", "same_pcie_root": "GPU tells its PCIe root"}
        why = next((f": no {lacks[name]}" for name in request.constraints if name in lacks), "")
        detail = f"No slice of {request.offering} can be {_constraint_phrase(request)}{why}."
        hint = "Leave this constraint out."
    else:
        most = f"{_plural(request.max_colocated)} of {request.offering}"
        detail = f"{most} can be {_constraint_phrase(request)} at most, and {request.count} were requested."
        hint = _at_most(request, f", or leave out {_listed(request)}")
    return Violation("never_fits", f"node:{request.offering}", request.max_colocated, 0, request.count, detail, hint)


def _listed(request: AdmissionInput) -> str:
    return " and ".join(f"constraints.{name}" for name in request.constraints)


def _constraint_phrase(request: AdmissionInput) -> str:
    return " and ".join(CONSTRAINT_PHRASES[name] for name in request.constraints)


def more_than_one_at_a_time(request: AdmissionInput) -> Violation | None:
    """Refuse more than one time-slicing replica: it gives no more of a GPU, and the device plugin may refuse such pods
    (failRequestsGreaterThanOne).
    """
    if not request.one_at_a_time or request.count == 1:
        return None
    return Violation(
        "count_invalid",
        f"node:{request.offering}",
        1,
        0,
        request.count,
        f"A slice of {request.offering} is one of {request.replicas} shares of a GPU. Several shares are not more of "
        "the GPU, and the device plugin refuses pods that request more than one (failRequestsGreaterThanOne).",
        "Ask for 1 in each allocation, or for a whole GPU or a MIG slice.",
    )


def more_than_the_quota(request: AdmissionInput) -> Violation | None:
    """Refuse more than the team's own limit, or more than it can get with all that it can borrow."""
    if request.count <= request.quota:
        return None
    if request.own is not None and request.own < request.count:
        return Violation(
            "quota_exceeded",
            f"team:{request.pool}",
            request.own,
            min(request.used, request.own),
            request.count,
            f"Team {request.team} may hold {_plural(request.own)} of {request.offering} at once, and {request.count} "
            "were requested.",
            _at_most(request, ", or have an operator raise the team's limit")
            if request.quota
            else "The team has no quota of it: choose another offering, or ask an operator for a limit.",
        )
    return Violation(
        "quota_exceeded",
        f"department:{request.pool}",
        request.quota,
        request.used,
        request.count,
        f"With all that it can borrow in department {request.department}, team {request.team} gets "
        f"{_plural(request.quota)} of {request.offering} at most, and {request.count} were requested.",
        _at_most(request, ", or have an operator raise the department's limit"),
    )


SUBJECTS = {"member": "You", "project": "The project", "team": "The team", "department": "The department"}


def full_limits(request: AdmissionInput) -> list[Violation]:
    """Return the violations of counted limits of member, project, team and department."""
    found = []
    for one in request.counted_limits:
        left = one.limit - one.used
        if request.count <= left:
            continue
        kind, _, scope = one.dimension.partition(":")
        scope_label = "GPUs in all" if scope == "all" else scope
        found.append(
            Violation(
                "limit_exceeded",
                one.dimension,
                one.limit,
                one.used,
                request.count,
                f"{SUBJECTS[kind]} may hold {_plural(one.limit)} of {request.offering} at once by the limit on "
                f"{scope_label}; {one.used} are in use or requested, and {request.count} more were requested.",
                f"Ask for at most {left}, or release something first."
                if left > 0
                else "Release something first, or ask a lead for more.",
            )
        )
    return found


def full_allocation_limits(request: AdmissionInput) -> list[Violation]:
    """Return the violations of limits of project and member on the number of allocations."""
    limits = request.fact(ALLOCATION_LIMITS)
    return [_too_many(one) for one in (limits.live if request.at is None else limits.scheduled) if one.is_full]


def _too_many(one: AllocationLimit) -> Violation:
    has = "You have" if one.holder == "member" else "The project has"
    where = " in the project" if one.holder == "member" else ""
    if one.is_scheduled:
        dimension, subject = "scheduled", f"scheduled allocations{where} that wait for their start"
        hint = "Cancel one of them, or ask again when one of them has started."
    else:
        dimension, subject = "allocations", f"allocations{where} that have not ended"
        hint = "Release one that is no longer needed, or ask for more slices in one allocation."
    detail = f"{has} {one.used} {subject}; the limit is {one.limit}."
    return Violation("limit_exceeded", f"{one.holder}:{dimension}", one.limit, one.used, 1, detail, hint)


def critical_priority(request: AdmissionInput) -> NeedsApproval | None:
    if request.priority != "critical":
        return None
    return NeedsApproval("lead", "Priority critical needs the role lead in the team.", "Use normal.")


Answer = Violation | list[Violation] | NeedsApproval | None
Rule = Callable[[AdmissionInput], Answer]
LIMITS: tuple[Rule, ...] = (full_allocation_limits, full_limits)
RULES: tuple[Rule, ...] = (
    offering_is_hidden,
    more_than_the_fleet,
    more_than_a_node,
    constraint_needs_named_devices,
    constraint_never_holds,
    more_than_one_at_a_time,
    more_than_the_quota,
    critical_priority,
    *LIMITS,
)
NEEDS: Mapping[Rule, tuple[Fact[Any], ...]] = {full_allocation_limits: (ALLOCATION_LIMITS,)}
"""The facts that rules need to know of a request."""


def needed(rules: Iterable[Rule] = RULES) -> list[Fact[Any]]:
    """Return the facts that these rules need, each once."""
    return list(dict.fromkeys(fact for rule in rules for fact in NEEDS.get(rule, ())))


def violations(request: AdmissionInput, rules: Iterable[Rule] = RULES) -> list[Violation]:
    """Return all violations of the request, in the order of the rules."""
    answers = (rule(request) for rule in rules)
    found = ([answer] if isinstance(answer, Violation) else answer for answer in answers)
    return [violation for each in found if isinstance(each, list) for violation in each]


def approvals(request: AdmissionInput, rules: Iterable[Rule] = RULES) -> list[NeedsApproval]:
    """Return the approvals that the request needs, in the order of the rules."""
    return [answer for rule in rules if isinstance(answer := rule(request), NeedsApproval)]


def fits(request: AdmissionInput) -> str:
    """Return ``never`` if a rule is violated, ``now`` if fleet and quota have enough free, else ``queue``."""
    if violations(request):
        return "never"
    return "now" if request.count <= max_available_now(request) else "queue"


def max_possible(request: AdmissionInput) -> int:
    """Return the largest count of the same offering that no rule refuses."""
    node = request.per_node if _on_one_node(request) else request.total
    bounds = [request.total, node, request.quota, *(one.limit - one.used for one in request.counted_limits)]
    if request.constraints:
        bounds.append(0 if request.max_colocated is None else request.max_colocated)
    if request.one_at_a_time:
        bounds.append(1)
    return max(0, min(bounds))


def max_available_now(request: AdmissionInput) -> int:
    """Return the largest count of the same offering that fits now."""
    free = request.free if request.free_colocated is None else min(request.free, request.free_colocated)
    return max(0, min(max_possible(request), free, request.quota - request.used))
