"""The spec of a ResourceClaim (resource.k8s.io/v1) for a claim as it was understood. Pure."""

from collections.abc import Sequence
from typing import Any

from allocations.claims import cel, config
from allocations.claims.model import CLASSES, Choice, Claim, Constraint, Request, Toleration, short

Spec = dict[str, Any]


def build(claim: Claim, products: Sequence[str]) -> Spec:
    """``products``: the product names of the flavor's devices, so that the claim stays on its flavor."""
    devices: Spec = {"requests": [_request(request, products) for request in claim.requests]}
    if claim.constraints:
        devices["constraints"] = [_constraint(constraint) for constraint in claim.constraints]
    if claim.config:
        devices["config"] = [config.opaque(each.sharing, each.device, each.requests) for each in claim.config]
    return {"devices": devices}


def _request(request: Request, products: Sequence[str]) -> Spec:
    if request.is_list:
        chosen = [{"name": choice.name, **_choice(choice, products)} for choice in request.choices]
        return {"name": request.name, "firstAvailable": chosen}
    (only,) = request.choices
    admin = {"adminAccess": True} if only.admin_access else {}
    return {"name": request.name, "exactly": {**_choice(only, products), **admin}}


def _choice(choice: Choice, products: Sequence[str]) -> Spec:
    how_many = (
        {"allocationMode": "All"} if choice.count is None else {"allocationMode": "ExactCount", "count": choice.count}
    )
    built: Spec = {
        "deviceClassName": CLASSES[choice.device],
        **how_many,
        "selectors": [{"cel": {"expression": expression}} for expression in cel.selectors(choice, products)],
    }
    if choice.tolerations:
        built["tolerations"] = [_toleration(toleration) for toleration in choice.tolerations]
    if choice.capacity:
        # Unlike selectors, requests of capacity name it exactly as it is published: the allocator compares the keys.
        built["capacity"] = {"requests": {short(name): amount for name, amount in choice.capacity.items()}}
    return built


def _toleration(toleration: Toleration) -> Spec:
    fields = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
    }
    seconds = {} if toleration.seconds is None else {"tolerationSeconds": toleration.seconds}
    return {name: value for name, value in fields.items() if value} | seconds


def _constraint(constraint: Constraint) -> Spec:
    which = "distinctAttribute" if constraint.distinct else "matchAttribute"
    named = {"requests": list(constraint.requests)} if constraint.requests else {}
    return {**named, which: constraint.attribute}
