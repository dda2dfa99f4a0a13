"""Which published devices meet a choice's conditions: what the CEL built of them comes to, without evaluating CEL."""

import re
from collections.abc import Sequence
from fractions import Fraction

from allocations.claims.model import SHARES, Choice, Condition, Device, Value
from quotas.catalog import quantities

Comparable = tuple[object, ...] | Fraction | Value


def meets(device: Device, choice: Choice) -> bool:
    """Whether the device is of the kind and meets every condition. An operator's own CEL is not read: it may narrow."""
    return (
        device.kind == choice.device
        and all(holds(device, condition) for condition in choice.conditions)
        and (not choice.capacity or device.shareable)
        and all(
            name in device.capacity and quantities.value(amount) <= quantities.value(device.capacity[name])
            for name, amount in choice.capacity.items()
        )
    )


def holds(device: Device, condition: Condition) -> bool:
    """Whether the device publishes the name and its value meets the condition."""
    published = device.capacity if condition.type == "quantity" else device.attributes
    if condition.name not in published:
        return False
    there = _comparable(published[condition.name], condition.type)
    asked = [_comparable(value, condition.type) for value in condition.values]
    match condition.operator:
        case "==" | "in":
            return there in asked
        case "!=":
            return there not in asked
        case ">":
            return there > asked[0]  # type: ignore[operator]  # both are of the condition's type
        case ">=":
            return there >= asked[0]  # type: ignore[operator]
        case "<":
            return there < asked[0]  # type: ignore[operator]
    return there <= asked[0]  # type: ignore[operator]


def _comparable(value: Value, type_: str) -> Comparable:
    if type_ == "quantity":
        return quantities.value(str(value))
    return _semver(str(value)) if type_ == "version" else value


def _semver(text: str) -> tuple[object, ...]:
    """Precedence as semver.org 2.0.0 has it: build metadata does not count, a pre-release comes before its release."""
    core, _, pre = re.sub(r"\+.*", "", text).partition("-")
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split(".")) if pre else ()
    return (*(int(number) for number in core.split(".")), not pre, parts)


def is_tolerated(device: Device, choice: Choice) -> bool:
    """Whether none of the device's taints keeps the choice away (resource.k8s.io/v1, DeviceToleration)."""
    return all(
        effect not in ("NoSchedule", "NoExecute")
        or any(
            t.effect in ("", effect)
            and (t.key == key or (not t.key and t.operator == "Exists"))
            and (t.operator == "Exists" or t.value == value)
            for t in choice.tolerations
        )
        for key, value, effect in device.taints
    )


def shares(choice: Choice) -> int:
    """Shares taken of a device that serves several claims."""
    return int(quantities.value(choice.capacity.get(SHARES, "1")))


def matching(choice: Choice, devices: Sequence[Device]) -> list[Device]:
    return [device for device in devices if meets(device, choice)]
