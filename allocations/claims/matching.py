"""Tests which devices meet a choice's conditions, with the same result as the CEL built from them. Pure."""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from allocations.claims.model import SHARES, Choice, Condition, Device, Value
from quotas.catalog import quantities

Comparable = tuple[object, ...] | Fraction | Value


def conditions(choice: Choice) -> Iterator[Condition]:
    """Yield the choice's conditions, with those that what it requests of a shared device makes."""
    yield from choice.conditions
    for name, amount in choice.capacity.items():
        yield Condition(name, "quantity", ">=", (amount,))


def meets(device: Device, choice: Choice) -> bool:
    """Return whether the device is of the kind and meets all conditions. Raw CEL is ignored, which may exclude some."""
    return (
        device.kind == choice.device
        and (device.shareable or not choice.capacity)
        and all(holds(device, condition) for condition in conditions(choice))
    )


def holds(device: Device, condition: Condition) -> bool:
    """Return whether the device publishes the name and its value meets the condition."""
    published = device.capacity if condition.type == "quantity" else device.attributes
    if (value := published.get(condition.name)) is None:
        return False
    operands = [comparable(each, condition.type) for each in condition.values]
    return is_met(condition.operator, comparable(value, condition.type), operands)


def is_met(operator: str, value: Comparable, operands: Sequence[Comparable]) -> bool:
    """Return whether the value compares so with the operands, of which only ``in`` has several."""
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


def comparable(value: Value, type_: str) -> Comparable:
    """Return what values of a condition's type are compared by."""
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
