"""Tests which devices meet a choice's conditions, with the same result as the CEL built from them. Pure."""

import re
from collections.abc import Sequence
from fractions import Fraction

from allocations.claims.model import SHARES, Choice, Condition, Device, Value
from quotas.catalog import quantities

Comparable = tuple[object, ...] | Fraction | Value


def matching(choice: Choice, devices: Sequence[Device]) -> list[Device]:
    """Return the devices that are of the kind and meet all conditions. Raw CEL, which may exclude some, is ignored."""
    found = [device for device in devices if device.kind == choice.device and (not choice.capacity or device.shareable)]
    for condition in choice.conditions:
        found = _meeting(condition, found)
    for name, amount in choice.capacity.items():
        found = _meeting(Condition(name, "quantity", ">=", (amount,)), found)
    return found


def meets(device: Device, choice: Choice) -> bool:
    """Return whether the device matches the choice."""
    return bool(matching(choice, [device]))


def holds(device: Device, condition: Condition) -> bool:
    """Return whether the device publishes the name and its value meets the condition."""
    return bool(_meeting(condition, [device]))


def _meeting(condition: Condition, devices: Sequence[Device]) -> list[Device]:
    """Return the devices that publish the name with a value that meets the condition; each value is compared once."""
    operands = [_comparable(each, condition.type) for each in condition.values]
    verdicts: dict[Value, bool] = {}
    found = []
    for device in devices:
        published = device.capacity if condition.type == "quantity" else device.attributes
        if (value := published.get(condition.name)) is not None:
            if value not in verdicts:
                verdicts[value] = _is_met(condition.operator, _comparable(value, condition.type), operands)
            if verdicts[value]:
                found.append(device)
    return found


def _is_met(operator: str, value: Comparable, operands: Sequence[Comparable]) -> bool:
    match operator:
        case "==" | "in":
            return value in operands
        case "!=":
            return value not in operands
        case ">":
            return value > operands[0]  # type: ignore[operator]  # both are of the condition's type
        case ">=":
            return value >= operands[0]  # type: ignore[operator]
        case "<":
            return value < operands[0]  # type: ignore[operator]
    return value <= operands[0]  # type: ignore[operator]


def _comparable(value: Value, type_: str) -> Comparable:
    if type_ == "quantity":
        return quantities.value(str(value))
    return _semver(str(value)) if type_ == "version" else value


def _semver(text: str) -> tuple[object, ...]:
    """Return a sort key by semver.org 2.0.0: build metadata is ignored, pre-releases come before their release."""
    core, _, pre = re.sub(r"\+.*", "", text).partition("-")
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split(".")) if pre else ()
    return (*(int(number) for number in core.split(".")), not pre, parts)


def is_tolerated(device: Device, choice: Choice) -> bool:
    """Return whether the choice tolerates all taints of the device (resource.k8s.io/v1, DeviceToleration)."""
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
    """Return the shares that the choice requests of a device that serves several claims."""
    return int(quantities.value(choice.capacity.get(SHARES, "1")))
