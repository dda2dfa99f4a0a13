"""Parses the document of a claim against the attributes that devices publish, and reports all errors by path."""

import re
from collections.abc import Mapping
from typing import Any

from allocations.claims import config, values
from allocations.claims.cel import OPERATORS
from allocations.claims.device_schema import AttributeInfo, DeviceSchema, problem
from allocations.claims.model import (
    CLASSES,
    MAX_DEVICES,
    PROFILE,
    SHARES,
    Choice,
    Claim,
    Condition,
    Config,
    Constraint,
    Request,
    Toleration,
    qualified,
)
from allocations.claims.reading import Errors, Node
from quotas.catalog import quantities

MAX_ITEMS = 32
"""The most requests, constraints and configurations of a claim, and selectors of a request (resource.k8s.io/v1)."""
MAX_CHOICES = 8
MAX_CHOICES_OF_CLAIM = 64
"""The most requests and alternatives together, each of which is compared with all devices of the flavor."""
MAX_TOLERATIONS = 16
MAX_CONDITIONS = 14
MAX_CEL = 2
MAX_CEL_LENGTH = 10 * 1024
EFFECTS = ("", "NoSchedule", "NoExecute")
CHOICE = ("device", "count", "profile", "attributes", "capacities", "capacity", "tolerations", "cel")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_DOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_KEY = re.compile(rf"((?=.{{1,253}}/)({_DOMAIN})/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?|", re.ASCII)
"""A taint's key and value: label names and values (apimachinery pkg/api/validate/content)."""
ORDERED = frozenset({"int", "version", "quantity"})


def parse(document: Any, schema: DeviceSchema, *, path: str = "claim") -> Claim:
    """Return the claim in the document. Raises Invalid with all errors by path, as in ``claim.requests[0].count``."""
    errors = Errors()
    node = Node(document, path, errors, ("requests", "constraints", "config"))
    requests = node.each("requests", MAX_ITEMS, lambda item, at: _request(item, at, errors, schema))
    if node.is_object and not requests and node.at("requests") not in errors.by_path:
        node.error("requests", "Give at least one request.")
    _check_names(requests, errors)
    claim = Claim(
        requests=tuple(requests),
        constraints=tuple(
            node.each("constraints", MAX_ITEMS, lambda item, at: _constraint(item, at, errors, schema, requests))
        ),
        config=tuple(node.each("config", MAX_ITEMS, lambda item, at: _config(item, at, errors, requests))),
    )
    if len(claim.choices) > MAX_CHOICES_OF_CLAIM:
        node.error(
            "requests",
            f"A claim has at most {MAX_CHOICES_OF_CLAIM} alternatives in all its requests, and these are "
            f"{len(claim.choices)}. Give equal requests as one with a count, or make it several allocations.",
        )
    least = sum(min((choice.count or 1 for choice in request.choices), default=0) for request in requests)
    if least > MAX_DEVICES:
        node.error(
            "requests",
            f"A claim gets at most {MAX_DEVICES} devices, and these are {least}; make it several allocations.",
        )
    errors.raise_any()
    return claim


def _check_names(requests: list[Request], errors: Errors) -> None:
    seen: set[str] = set()
    for request in requests:
        if request.name in seen:
            errors.add(f"{request.path}.name", f"Another request is named {request.name}.")
        seen.add(request.name)
        names = [choice.name for choice in request.choices]
        for choice in request.choices:
            if request.is_list and names.count(choice.name) > 1:
                errors.add(f"{choice.path}.name", f"Another alternative is named {choice.name}.")


def _request(document: Any, path: str, errors: Errors, schema: DeviceSchema) -> Request:
    has_list = isinstance(document, Mapping) and document.get("alternatives") is not None
    index = path[path.rindex("[") + 1 : -1]
    if not has_list:
        node = Node(document, path, errors, ("name", *CHOICE, "admin_access", "alternatives"))
        name = _name(node, f"slice-{index}")
        return Request(path, name, (_choice(node, name, schema),))
    node = Node(document, path, errors, ("name", "alternatives"))
    choices = node.each(
        "alternatives",
        MAX_CHOICES,
        lambda item, at: _alternative(Node(item, at, errors, ("name", *CHOICE)), schema),
    )
    if not choices:
        node.error("alternatives", "Give at least one, the best first.")
    return Request(path, _name(node, f"slice-{index}"), tuple(choices), is_list=True)


def _alternative(node: Node, schema: DeviceSchema) -> Choice:
    return _choice(node, _name(node, f"choice-{node.path[node.path.rindex('[') + 1 : -1]}"), schema)


def _name(node: Node, default: str) -> str:
    name = node.text("name") or default
    if not _NAME.fullmatch(name):
        node.error("name", "Use lower-case letters, digits and hyphens, at most 63, no hyphen at either end.")
        return default
    return name


def _choice(node: Node, name: str, schema: DeviceSchema) -> Choice:
    device = node.choice("device", tuple(CLASSES), "gpu")
    if device not in schema.devices and node.is_object:
        node.error("device", f"There is no {device} here. Devices are: {', '.join(schema.devices) or 'none'}.")
    conditions = [
        *_profile(node, device, schema),
        *node.each(
            "attributes",
            MAX_CONDITIONS,
            lambda item, at: _condition(item, at, node.errors, schema.attributes, "attribute"),
        ),
        *node.each(
            "capacities",
            MAX_CONDITIONS,
            lambda item, at: _condition(item, at, node.errors, schema.capacities, "capacity"),
        ),
    ]
    return Choice(
        path=node.path,
        name=name,
        device=device,
        count=_count(node),
        conditions=tuple(condition for condition in conditions if condition is not None),
        capacity=_capacity(node, schema),
        tolerations=tuple(
            node.each("tolerations", MAX_TOLERATIONS, lambda item, at: _toleration(item, at, node.errors))
        ),
        cel=_cel(node),
        admin_access=node.flag("admin_access"),
    )


def _count(node: Node) -> int | None:
    count = node.fields.get("count", 1)
    if count == "all":
        return None
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_DEVICES:
        node.error("count", f'Give a whole number from 1 to {MAX_DEVICES}, or "all" for all of a node.')
        return 1
    return count


def _profile(node: Node, device: str, schema: DeviceSchema) -> list[Condition]:
    profile = node.text("profile")
    if not profile:
        return []
    if device != "mig":
        node.error("profile", "A whole GPU has no profile; ask for device mig, or leave it out.")
    elif profile not in schema.profiles:
        node.error("profile", f"No device here has this profile. There are: {', '.join(schema.profiles) or 'none'}.")
    return [Condition(PROFILE, "string", "==", (profile,))]


def _condition(
    document: Any, path: str, errors: Errors, attributes: Mapping[str, AttributeInfo], what: str
) -> Condition | None:
    node = Node(document, path, errors, ("name", "operator", "value"))
    if not node.is_object:
        return None
    name, operator = node.text("name"), node.choice("operator", OPERATORS, "==")
    if sentence := problem(name, attributes, what):
        node.error("name", sentence)
        return None
    type_ = attributes[qualified(name)].type
    if operator in (">", ">=", "<", "<=") and type_ not in ORDERED:
        node.error("operator", f"{name} is a {type_}, which has no order: use ==, != or in.")
    field = node.fields.get("value")
    operands = field if operator == "in" else [field]
    if not isinstance(operands, list) or not 1 <= len(operands) <= MAX_ITEMS:
        node.error("value", f"Give a list of 1 to {MAX_ITEMS} values.")
        return None
    for value in operands:
        if sentence := values.problem(value, type_):
            node.error("value", sentence)
            return None
    return Condition(qualified(name), type_, operator, tuple(operands))


def _capacity(node: Node, schema: DeviceSchema) -> dict[str, str]:
    capacity: dict[str, str] = {}
    for name, amount in node.mapping("capacity").items():
        path = f"{node.at('capacity')}[{str(name)[:64]}]"
        if sentence := problem(str(name), schema.capacities, "capacity") or values.amount_problem(amount):
            node.errors.add(path, sentence)
        elif not schema.shareable:
            node.errors.add(
                path, "Devices here serve one claim at a time, so no part of one can be taken; leave it out."
            )
        elif qualified(name) == SHARES and (quantities.value(amount).denominator != 1 or quantities.value(amount) < 1):
            node.errors.add(path, "Shares are whole: give 1 or more.")
        else:
            capacity[qualified(name)] = amount
    return capacity


def _toleration(document: Any, path: str, errors: Errors) -> Toleration:
    node = Node(document, path, errors, ("key", "operator", "value", "effect", "seconds"))
    key, value = node.text("key"), node.text("value")
    operator = node.choice("operator", ("Exists", "Equal"), "Equal" if value else "Exists")
    effect = node.choice("effect", EFFECTS, "")
    seconds = node.whole("seconds", 0, 2**31)
    if not _KEY.fullmatch(key):
        node.error("key", "Give [domain/]name, of letters, digits, hyphens, underscores and dots, as a taint has it.")
    if not _VALUE.fullmatch(value):
        node.error("value", "Use letters, digits, hyphens, underscores and dots, at most 63, as a taint has them.")
    if operator == "Exists" and value:
        node.error("value", "With Exists there is no value; leave it out.")
    if operator == "Equal" and not key:
        node.error("key", "Give the key of the taint.")
    if seconds is not None and effect != "NoExecute":
        node.error("seconds", "It goes with the effect NoExecute only.")
    return Toleration(key, operator, value, effect, seconds)


def _cel(node: Node) -> tuple[str, ...]:
    expressions = node.texts("cel", MAX_CEL)
    for index, expression in enumerate(expressions):
        if not expression.strip() or len(expression) > MAX_CEL_LENGTH or not values.is_text(expression):
            node.error(f"cel[{index}]", f"Give 1 to {MAX_CEL_LENGTH} characters, all of them real ones.")
    return tuple(expressions)


def _request_names(node: Node, requests: list[Request]) -> tuple[str, ...]:
    """Return the names in ``requests``, of requests or of alternatives as ``request/alternative``."""
    options = [request.name for request in requests]
    options += [
        f"{request.name}/{choice.name}" for request in requests if request.is_list for choice in request.choices
    ]
    names = node.texts("requests", MAX_ITEMS)
    for index, name in enumerate(names):
        if name in names[:index]:
            node.error(f"requests[{index}]", f"{name} is named twice; once is enough.")
        elif name not in options:
            node.error(f"requests[{index}]", f"There is no such request. Requests are: {', '.join(options) or 'none'}.")
    return tuple(names)


def _constraint(document: Any, path: str, errors: Errors, schema: DeviceSchema, requests: list[Request]) -> Constraint:
    node = Node(document, path, errors, ("match_attribute", "distinct_attribute", "requests"))
    match, distinct = node.text("match_attribute"), node.text("distinct_attribute")
    if node.is_object and bool(match) == bool(distinct):
        errors.add(path, "Give match_attribute or distinct_attribute, one of them.")
    for field, name in (("match_attribute", match), ("distinct_attribute", distinct)):
        if name and (sentence := problem(name, schema.attributes, "attribute")):
            node.error(field, sentence)
    return Constraint(path, qualified(match or distinct), bool(distinct), _request_names(node, requests))


def _config(document: Any, path: str, errors: Errors, requests: list[Request]) -> Config:
    node = Node(document, path, errors, ("requests", "sharing"))
    names = _request_names(node, requests)
    choices = [
        choice
        for request in requests
        for choice in request.choices
        if not names or request.name in names or f"{request.name}/{choice.name}" in names
    ]
    kinds = sorted({choice.device for choice in choices})
    if len(kinds) > 1:
        node.error("requests", "GPUs and MIG devices take different configurations; name requests of one kind.")
    counts = [choice.count for choice in choices]
    most = sum(count for count in counts if count is not None) if None not in counts else config.MAX_DEVICES
    device = kinds[0] if kinds else "gpu"
    sharing = config.read(node.fields.get("sharing"), node.at("sharing"), errors, device, max(1, most))
    return Config(names, device, sharing)
