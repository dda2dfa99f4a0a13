"""Rules of a request: an ordered list of pure functions; each says what binds, or nothing. All inputs are passed in.

The first rule that binds gives the refusal; preview and request run the same list, so they cannot disagree.
Concurrency is not decided here: what fits the empty queue and the fleet is Kueue's to admit, now or later.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from allocations.domain.admission import AllocationLimit, Ask, Binding
from allocations.domain.allocation_spec import MAX_SLICES
from allocations.domain.backend_capabilities import CAPABILITIES

MOST_SLICES = MAX_SLICES
LONGEST = timedelta(days=366)


def _on_one_node(ask: Ask) -> bool:
    return CAPABILITIES[ask.path].spreads_on_request and not ask.spread


def _plural(count: int) -> str:
    return f"{count} slice" if count == 1 else f"{count} slices"


def _at_most(ask: Ask, otherwise: str = "") -> str:
    """The largest count that would be accepted, as a hint."""
    most = most_possible(ask)
    return f"Ask for at most {most}{otherwise}." if most else "Choose another offering; GET /offerings lists them."


def offering_is_hidden(ask: Ask) -> Binding | None:
    if not ask.hidden:
        return None
    return Binding(
        "offering_hidden",
        f"capacity:{ask.offering}",
        0,
        0,
        ask.count,
        f"{ask.offering} is not offered.",
        "GET /offerings lists what is.",
    )


def more_than_the_fleet(ask: Ask) -> Binding | None:
    if ask.count <= ask.total:
        return None
    return Binding(
        "never_fits",
        f"capacity:{ask.offering}",
        ask.total,
        ask.total - ask.free,
        ask.count,
        f"The fleet has {_plural(ask.total)} of {ask.offering} in all, and {ask.count} were asked.",
        _at_most(ask),
    )


def more_than_a_node(ask: Ask) -> Binding | None:
    """A claim is allocated on one node. With ``spread`` each slice has a claim of its own; a device plugin hold is a
    count that pods of several nodes may draw on."""
    if not _on_one_node(ask) or ask.count <= ask.per_node or ask.total == 0:
        return None
    most = most_possible(replace(ask, spread=True))
    wider = f", or set constraints.spread for up to {most} on several nodes" if most > most_possible(ask) else ""
    return Binding(
        "never_fits",
        f"node:{ask.offering}",
        ask.per_node,
        0,
        ask.count,
        f"All slices of one allocation are on one node, and a node has at most {ask.per_node} of {ask.offering}.",
        _at_most(ask, wider),
    )


MEANS = {
    "same_gpu": "on one GPU",
    "same_pcie_root": "on GPUs of one PCIe root",
    "same_clique": "in one NVLink clique",
    "distinct_gpus": "on a GPU each",
}
"""What the constraints of a request say of its slices."""


def constraint_needs_named_devices(ask: Ask) -> Binding | None:
    backend = CAPABILITIES[ask.path]
    if backend.takes_constraints or not ask.constraints:
        return None
    return Binding(
        "never_fits",
        f"node:{ask.offering}",
        0,
        0,
        ask.count,
        f"By {backend.label} Kubernetes names no device, so {_listed(ask)} cannot be promised of {ask.offering}.",
        "Leave these constraints out, or ask for an offering of a flavor by DRA (path dra in GET /offerings).",
    )


def constraint_never_holds(ask: Ask) -> Binding | None:
    """Even of an idle fleet no ``count`` slices stand to each other as the request wants them."""
    if not ask.constraints or ask.together is None or ask.count <= ask.together:
        return None
    if ask.together == 0:
        lacks = {"same_clique": "node has the label nvidia.com/gpu.clique", "same_pcie_root": "GPU tells its PCIe root"}
        why = next((f": no {lacks[name]}" for name in ask.constraints if name in lacks), "")
        detail = f"No slice of {ask.offering} can be {_meant(ask)}{why}."
        hint = "Leave this constraint out."
    else:
        detail = f"{_plural(ask.together)} of {ask.offering} can be {_meant(ask)} at most, and {ask.count} were asked."
        hint = _at_most(ask, f", or leave out {_listed(ask)}")
    return Binding("never_fits", f"node:{ask.offering}", ask.together, 0, ask.count, detail, hint)


def _listed(ask: Ask) -> str:
    return " and ".join(f"constraints.{name}" for name in ask.constraints)


def _meant(ask: Ask) -> str:
    return " and ".join(MEANS[name] for name in ask.constraints)


def more_than_one_at_a_time(ask: Ask) -> Binding | None:
    """More replicas of a card give no more of it; with failRequestsGreaterThanOne the device plugin refuses them."""
    if not ask.one_at_a_time or ask.count == 1:
        return None
    return Binding(
        "count_invalid",
        f"node:{ask.offering}",
        1,
        0,
        ask.count,
        f"A slice of {ask.offering} makes one of {ask.replicas} users of a GPU. More of them are no more of the GPU, "
        "and the device plugin refuses pods that ask for more than one (failRequestsGreaterThanOne).",
        "Ask for 1 in each allocation, or for a whole GPU or a MIG slice.",
    )


def more_than_the_quota(ask: Ask) -> Binding | None:
    """The team's own bound, where that is less than what is asked; else there is not as much to borrow."""
    if ask.count <= ask.quota:
        return None
    if ask.own is not None and ask.own < ask.count:
        return Binding(
            "quota_exceeded",
            f"team:{ask.pool}",
            ask.own,
            min(ask.used, ask.own),
            ask.count,
            f"Team {ask.team} may hold {_plural(ask.own)} of {ask.offering} at once, and {ask.count} were asked.",
            _at_most(ask, ", or have an operator raise the team's limit")
            if ask.quota
            else "The team has no quota of it: choose another offering, or ask an operator for a limit.",
        )
    return Binding(
        "quota_exceeded",
        f"department:{ask.pool}",
        ask.quota,
        ask.used,
        ask.count,
        f"With all that it can borrow in department {ask.department}, team {ask.team} gets {_plural(ask.quota)} of "
        f"{ask.offering} at most, and {ask.count} were asked.",
        _at_most(ask, ", or have an operator raise the department's limit"),
    )


WHOSE = {"member": "You", "project": "The project", "team": "The team", "department": "The department"}


def full_limits(ask: Ask) -> list[Binding]:
    """Limits of member, project, team and department that what is in use leaves too little of."""
    found = []
    for one in ask.counted:
        left = one.limit - one.used
        if ask.count <= left:
            continue
        kind, _, scope = one.dimension.partition(":")
        of = "GPUs in all" if scope == "all" else scope
        found.append(
            Binding(
                "limit_exceeded",
                one.dimension,
                one.limit,
                one.used,
                ask.count,
                f"{WHOSE[kind]} may hold {_plural(one.limit)} of {ask.offering} at once by the limit on {of}; "
                f"{one.used} are in use or asked for, and {ask.count} more were asked.",
                f"Ask for at most {left}, or release something first."
                if left > 0
                else "Release something first, or ask a lead for more.",
            )
        )
    return found


def full_allocation_limits(ask: Ask) -> list[Binding]:
    """Limits of project and member on the number of allocations that leave no room for one more."""
    return [_too_many(one) for one in ask.allocation_limits if one.is_full]


def _too_many(one: AllocationLimit) -> Binding:
    has = "You have" if one.holder == "member" else "The project has"
    where = " in the project" if one.holder == "member" else ""
    if one.is_scheduled:
        dimension, what = "scheduled", f"scheduled allocations{where} that wait for their start"
        hint = "Cancel one of them, or ask again when one of them has started."
    else:
        dimension, what = "allocations", f"allocations{where} that have not ended"
        hint = "Release one that is no longer needed, or ask for more slices in one allocation."
    detail = f"{has} {one.used} {what}; {one.limit} are the most."
    return Binding("limit_exceeded", f"{one.holder}:{dimension}", one.limit, one.used, 1, detail, hint)


RULES: tuple[Callable[[Ask], Binding | None], ...] = (
    offering_is_hidden,
    more_than_the_fleet,
    more_than_a_node,
    constraint_needs_named_devices,
    constraint_never_holds,
    more_than_one_at_a_time,
    more_than_the_quota,
)


def bindings(ask: Ask, rules: Iterable[Callable[[Ask], Binding | None]] = RULES) -> list[Binding]:
    """All that binds, the first one first."""
    found = (binding for rule in rules if (binding := rule(ask)) is not None)
    return [*found, *full_allocation_limits(ask), *full_limits(ask)]


def fits(ask: Ask) -> str:
    """``never`` when something binds, ``now`` when it is free in fleet and quota, else ``queue``."""
    if bindings(ask):
        return "never"
    return "now" if ask.count <= most_now(ask) else "queue"


def most_possible(ask: Ask) -> int:
    """The largest count of the same offering that no rule refuses."""
    node = ask.per_node if _on_one_node(ask) else ask.total
    bounds = [ask.total, node, ask.quota, *(one.limit - one.used for one in ask.counted)]
    if ask.constraints:
        bounds.append(0 if ask.together is None else ask.together)
    if ask.one_at_a_time:
        bounds.append(1)
    return max(0, min(bounds))


def most_now(ask: Ask) -> int:
    """The largest count of the same offering that fits at once."""
    at_once = ask.free if ask.free_together is None else min(ask.free, ask.free_together)
    return max(0, min(most_possible(ask), at_once, ask.quota - ask.used))


@dataclass(frozen=True)
class Period:
    starts_at: datetime | None
    ends_at: datetime


def period(
    now: datetime,
    default_hours: int,
    *,
    hours: object = None,
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
) -> Period | dict[str, list[str]]:
    """When the allocation begins and ends, or what is wrong with the times: {field: [sentence]}."""
    errors: dict[str, list[str]] = {}
    if hours is not None and ends_at is not None:
        errors["hours"] = ["Give hours or ends_at, not both."]
    if starts_at is not None and starts_at < now - timedelta(minutes=1):
        errors["starts_at"] = ["It is in the past; leave it out to start now."]
    if starts_at is not None and starts_at - now > LONGEST:
        return {**errors, "starts_at": [f"It may start at most {LONGEST.days} days from now."]}
    begin = starts_at if starts_at is not None and starts_at > now else now
    length = timedelta(hours=float(hours if hours is not None else default_hours))  # type: ignore[arg-type]
    end = ends_at if ends_at is not None else begin + length
    if end <= begin:
        errors["ends_at" if ends_at is not None else "hours"] = ["It ends before it begins; choose a later end."]
    elif end - begin > LONGEST:
        field = "ends_at" if ends_at is not None else "hours"
        errors[field] = [f"The longest allocation is {LONGEST.days} days ({LONGEST.days * 24} hours)."]
    if errors:
        return errors
    return Period(starts_at=begin if begin > now else None, ends_at=end)
