"""Diagnoses claims that can never be allocated, and suggests what would work instead. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from allocations.claims import fit
from allocations.claims.fit import Answer, Fleet
from allocations.claims.matching import holds, meets
from allocations.claims.model import Choice, Claim, Condition, Device, short
from quotas.catalog import quantities

MAX_REDUCED_REQUESTS = 4
"""The most requests for which a smaller count is searched, which is enough for a hint."""


@dataclass(frozen=True)
class Infeasible:
    """Why a claim can never be allocated, by the path of the faulty part.

    ``requested`` is the requested count. ``max_count`` is the largest count that would work, or 0 if no smaller count
    helps.
    """

    path: str
    detail: str
    hint: str
    requested: int = 1
    max_count: int = 0


def infeasible(claim: Claim, fleet: Fleet) -> Infeasible | None:
    """Return why the claim cannot be allocated even on an idle fleet; None if it can.

    The first of these that applies:

    1. A request whose conditions no device meets.
    2. A request that is too large for any node by itself.
    3. A constraint without which the claim would fit.
    4. All requests together.
    """
    empty = fleet.empty()
    if fit.fits(claim, empty) is not Answer.NO:
        return None
    for request in claim.requests:
        if not any(meets(device, choice) for choice in request.choices for device in empty.devices):
            return _unmet(request.choices[0], empty.devices)
    for index, alone in fit.single_requests(claim):
        if fit.fits(alone, empty) is Answer.NO:
            return _too_many(alone, claim.requests[index].path, empty)
    for constraint in claim.constraints:
        if fit.fits(fit.without(claim, [constraint]), empty) is not Answer.NO:
            return _unsatisfiable(claim, constraint.path, short(constraint.attribute), constraint.distinct, empty)
    if claim.constraints and fit.fits(replace(claim, constraints=()), empty) is not Answer.NO:
        return Infeasible(
            claim.constraints[0].path,
            "The constraints cannot hold together on any node.",
            "Leave one of them out; each by itself could hold.",
        )
    return Infeasible(
        claim.requests[0].path,
        "Each request could be held, but no node has room for all of them together, and a claim is on one node.",
        "Ask for less, or make it several allocations, which may be on several nodes.",
    )


def _unmet(choice: Choice, devices: Sequence[Device]) -> Infeasible:
    candidates = [device for device in devices if device.kind == choice.device]
    for condition in choice.conditions:
        if not any(holds(device, condition) for device in candidates):
            return Infeasible(
                choice.path,
                f"No {choice.device} here has {short(condition.name)} {condition.operator} {_values(condition)}.",
                _published(condition, candidates),
            )
    return Infeasible(
        choice.path,
        f"No {choice.device} here meets all these conditions at once.",
        "Each is met by some device: leave one out, or list them as alternatives.",
    )


def _values(condition: Condition) -> str:
    return ", ".join(str(value) for value in condition.values)


def _published(condition: Condition, devices: Sequence[Device]) -> str:
    mappings = [d.capacity if condition.type == "quantity" else d.attributes for d in devices]
    values = {str(mapping[condition.name]) for mapping in mappings if condition.name in mapping}
    if condition.type == "quantity" and values:
        ordered = sorted(values, key=quantities.value)
        values = {" to ".join(dict.fromkeys((ordered[0], ordered[-1])))}
    return f"Devices here have {', '.join(sorted(values)[:10])}." if values else "No device of that kind publishes it."


def _too_many(alone: Claim, path: str, empty: Fleet) -> Infeasible:
    choices = alone.requests[0].choices
    if all(choice.count is None for choice in choices):
        return Infeasible(
            path,
            "All devices of a node cannot be had at once: they are parts of the same GPUs.",
            "Ask for whole GPUs, or for a number of devices.",
        )
    requested = max(choice.count or 1 for choice in choices)
    most = fit.max_count(alone, 0, empty)
    return Infeasible(
        path,
        f"A claim is on one node, and no node can give {requested} of these at once.",
        f"Ask for at most {most}." if most else "Ask for another kind of device.",
        requested,
        most,
    )


def _unsatisfiable(claim: Claim, path: str, attribute: str, distinct: bool, empty: Fleet) -> Infeasible:
    counts = [fit.max_count(claim, index, empty) for index in range(min(MAX_REDUCED_REQUESTS, len(claim.requests)))]
    most = max(counts, default=0)
    relation = "each with another" if distinct else "all with the same"
    requested = sum(request.choices[0].count or 1 for request in claim.requests)
    hint = "Leave"
    if most:
        request = claim.requests[counts.index(most)]
        hint = f"Ask for at most {most} as {request.name}, or leave"
    return Infeasible(
        path,
        f"No node has so many devices, {relation} {attribute}.",
        f"{hint} the constraint out.",
        requested,
        most,
    )
