"""Builds the spec of a ResourceClaim (resource.k8s.io/v1) from a parsed claim. Pure."""

from collections.abc import Sequence
from typing import Any

from allocations.claims import cel, config
from allocations.claims.model import CLASSES, Choice, Claim, Constraint, Request, Toleration, short

Spec = dict[str, Any]


def build(claim: Claim, products: Sequence[str]) -> Spec:
    """Return the spec of the claim's ResourceClaim.

    ``products`` are the product names of the flavor's devices, which restrict the claim to its flavor.
    """
    devices: Spec = {"requests": [_request(request, products) for request in claim.requests]}
    if claim.constraints:
        devices["constraints"] = [_constraint(constraint) for constraint in claim.constraints]
    if claim.config:
        devices["config"] = [config.opaque(each.sharing, each.device, each.requests) for each in claim.config]
    return {"devices": devices}


def _request(request: Request, products: Sequence[str]) -> Spec:
    if request.is_list:
        alternatives = [{"name": choice.name, **_choice(choice, products)} for choice in request.choices]
        return {"name": request.name, "firstAvailable": alternatives}
    (only,) = request.choices
    admin = {"adminAccess": True} if only.admin_access else {}
    return {"name": request.name, "exactly": {**_choice(only, products), **admin}}


def _choice(choice: Choice, products: Sequence[str]) -> Spec:
    allocation_mode = (
        {"allocationMode": "All"} if choice.count is None else {"allocationMode": "ExactCount", "count": choice.count}
    )
    spec: Spec = {
        "deviceClassName": CLASSES[choice.device],
        **allocation_mode,
        "selectors": [{"cel": {"expression": expression}} for expression in cel.selectors(choice, products)],
    }
    if choice.tolerations:
        spec["tolerations"] = [_toleration(toleration) for toleration in choice.tolerations]
    if choice.capacity:
        # Unlike selectors, capacity requests use the name exactly as published: the allocator compares the keys.
        spec["capacity"] = {"requests": {short(name): amount for name, amount in choice.capacity.items()}}
    return spec


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
    field = "distinctAttribute" if constraint.distinct else "matchAttribute"
    requests = {"requests": list(constraint.requests)} if constraint.requests else {}
    return {**requests, field: constraint.attribute}
