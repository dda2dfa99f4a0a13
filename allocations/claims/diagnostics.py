"""Diagnoses claims that can never be allocated, or not found in time, and suggests what would work instead. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from allocations.claims import fit
from allocations.claims.fit import Answer, Fleet, Search
from allocations.claims.matching import holds
from allocations.claims.model import MEMORY, Choice, Claim, Condition, Device, Request, short
from portal.core.errors import ViolationReason
from quotas.catalog import quantities

TOO_COMPLEX: ViolationReason = "too_complex"
MAX_REDUCED_REQUESTS = 4
"""The most requests for which a smaller count is searched, which is enough for a hint."""


@dataclass(frozen=True)
class Infeasible:
    """Why a claim can never be allocated, by the path of the faulty part.

    ``requested`` is the requested count. ``max_count`` is the largest count that would work, or 0 if no smaller count
    helps. ``reason`` is that of the refusal (``portal.core.errors``).
    """

    path: str
    detail: str
    hint: str
    requested: int = 1
    max_count: int = 0
    reason: ViolationReason = "never_fits"


def infeasible(claim: Claim, fleet: Fleet) -> Infeasible | None:
    """Return why the claim must not reach the scheduler; None if the scheduler finds its devices on an idle fleet.

    The first of these that applies:

    1. A request whose conditions no device meets.
    2. A request that is too large for any node by itself.
    3. A constraint without which the claim would fit.
    4. All requests together.
    5. It fits, or nobody knows, but the scheduler would search for too long.
    """
    empty = fleet.empty()
    search = Search(empty)
    if search.is_found_by_scheduler(claim):
        return None
    if (answer := search.fits(claim)) is not Answer.NO:
        return _too_complex(claim, answer, search)
    for request in claim.requests:
        if not any(node.published.count(choice) for choice in request.choices for node in search.nodes):
            return _unmet(request.choices[0], empty.devices)
    for request in _different(claim.requests):
        alone = replace(claim, requests=(request,), constraints=())
        if search.fits(alone) is Answer.NO:
            return _too_many(alone, request.path, search)
    for constraint in claim.constraints:
        others = tuple(each for each in claim.constraints if each != constraint)
        if search.fits(replace(claim, constraints=others)) is Answer.YES:
            return _unsatisfiable(claim, constraint.path, short(constraint.attribute), constraint.distinct, search)
    if claim.constraints and search.fits(replace(claim, constraints=())) is Answer.YES:
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


def _different(requests: Sequence[Request]) -> list[Request]:
    """Return the requests, one of those that differ in nothing but their names."""
    found: list[tuple[list[Choice], Request]] = []
    for request in requests:
        choices = [replace(choice, path="", name="") for choice in request.choices]
        if all(choices != others for others, _ in found):
            found.append((choices, request))
    return [request for _, request in found]


def _too_complex(claim: Claim, answer: Answer, search: Search) -> Infeasible:
    """Return the refusal of a claim that the scheduler would search too long for, with what it would find."""
    path, limit = claim.requests[0].path.rpartition("[")[0], f"{search.scheduler_steps:,} steps"
    if answer is Answer.UNKNOWN:
        return Infeasible(
            path,
            f"The portal cannot tell within {fit.MAX_STEPS:,} steps whether any node can hold all of this.",
            "Ask for fewer different requests, alternatives or constraints, or make it several allocations.",
            reason=TOO_COMPLEX,
        )
    hint = "Divide it into several allocations, or ask for fewer devices, alternatives or conditions."
    for words, key in (("for the largest devices", _size), ("that the fewest devices meet", _number)):
        ranks = {choice.path: key(choice, search) for choice in claim.choices}
        ordered = sorted(claim.requests, key=lambda request: min(ranks[choice.path] for choice in request.choices))
        if search.is_found_by_scheduler(replace(claim, requests=tuple(ordered))):
            names = ", ".join(dict.fromkeys(request.name for request in ordered))
            hint = f"List the requests {words} first: {names}."
            break
    return Infeasible(
        path,
        f"A node could hold this, but the scheduler would not find it within {limit}, and others would wait for it.",
        hint,
        reason=TOO_COMPLEX,
    )


def _size(choice: Choice, search: Search) -> Fraction:
    """Return the least memory of the devices that the choice can get, in bytes, negative: the largest is first."""
    amounts = (
        quantities.value(device.capacity.get(MEMORY, "0"))
        for node in search.nodes
        for _, device, _ in node.published.groups(choice)
    )
    return -min(amounts, default=Fraction(0))


def _number(choice: Choice, search: Search) -> int:
    """Return the number of devices that the choice can get, on all nodes."""
    return sum(node.published.count(choice) for node in search.nodes)


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


def _too_many(alone: Claim, path: str, search: Search) -> Infeasible:
    choices = alone.requests[0].choices
    if all(choice.count is None for choice in choices):
        return Infeasible(
            path,
            "All devices of a node cannot be had at once: they are parts of the same GPUs.",
            "Ask for whole GPUs, or for a number of devices.",
        )
    requested = max(choice.count or 1 for choice in choices)
    most = search.max_count(alone, 0)
    return Infeasible(
        path,
        f"A claim is on one node, and no node can give {requested} of these at once.",
        f"Ask for at most {most}." if most else "Ask for another kind of device.",
        requested,
        most,
    )


def _unsatisfiable(claim: Claim, path: str, attribute: str, distinct: bool, search: Search) -> Infeasible:
    counts = [search.max_count(claim, index) for index in range(min(MAX_REDUCED_REQUESTS, len(claim.requests)))]
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
