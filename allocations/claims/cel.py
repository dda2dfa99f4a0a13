"""Builds CEL expressions from conditions, by which the scheduler selects devices.

An expression tests that an attribute or capacity exists (``"x" in ...``) before it reads it, since a missing one would
fail the whole allocation. Names and values from people are inserted as literals only, so they cannot change the
structure of an expression. Source: Kubernetes resource.k8s.io/v1, CELDeviceSelector; CEL language definition.
"""

from collections.abc import Sequence

from allocations.claims.model import PRODUCT, Choice, Condition, Value
from quotas.catalog.cel import text

OPERATORS = ("==", "!=", ">", ">=", "<", "<=", "in")


def literal(value: Value, type_: str) -> str:
    """Return the value as a CEL literal of its type."""
    if type_ == "quantity":
        return f"quantity({text(str(value))})"
    if type_ == "version":
        return f"semver({text(str(value))})"
    if type_ == "bool":
        return "true" if value else "false"
    return str(int(value)) if type_ == "int" else text(str(value))


def expression(condition: Condition) -> str:
    """Return an expression that is true for devices that publish the name and meet the condition."""
    domain, _, name = condition.name.rpartition("/")
    group = f"device.{'capacity' if condition.type == 'quantity' else 'attributes'}[{text(domain)}]"
    field = f"{group}[{text(name)}]"
    exists = f"{text(name)} in {group}"
    values = [literal(value, condition.type) for value in condition.values]
    if condition.type in ("quantity", "version"):
        operator = "==" if condition.operator == "in" else condition.operator
        comparisons = [f"{field}.compareTo({value}) {operator} 0" for value in values]
        return f"{exists} && {comparisons[0]}" if len(comparisons) == 1 else f"{exists} && ({' || '.join(comparisons)})"
    if condition.operator == "in":
        return f"{exists} && {field} in [{', '.join(values)}]"
    return f"{exists} && {field} {condition.operator} {values[0]}"


def selectors(choice: Choice, products: Sequence[str]) -> list[str]:
    """Return the expressions of a choice, all of which must hold: for the product, each condition, and raw CEL."""
    product = Condition(PRODUCT, "string", "==" if len(products) == 1 else "in", tuple(products))
    return [*map(expression, (product, *choice.conditions)), *choice.cel]
