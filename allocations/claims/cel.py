"""Conditions as CEL, by which the scheduler chooses devices. Text from people enters as literals only.

Every attribute and capacity is asked for (``"x" in ...``) before it is read: a missing one would abort the whole
allocation. Names are literals too (``device.attributes["domain"]["name"]``), so whatever they hold, an expression has
the shape that this module gave it. Source: Kubernetes resource.k8s.io/v1, CELDeviceSelector; CEL language definition.
"""

from collections.abc import Sequence

from allocations.claims.model import PRODUCT, Choice, Condition, Value
from quotas.catalog.cel import text

OPERATORS = ("==", "!=", ">", ">=", "<", "<=", "in")


def literal(value: Value, type_: str) -> str:
    """The value as CEL of its type."""
    if type_ == "quantity":
        return f"quantity({text(str(value))})"
    if type_ == "version":
        return f"semver({text(str(value))})"
    if type_ == "bool":
        return "true" if value else "false"
    return str(int(value)) if type_ == "int" else text(str(value))


def condition(asked: Condition) -> str:
    """An expression that is true of the devices that publish the name and meet the condition."""
    domain, _, name = asked.name.rpartition("/")
    group = f"device.{'capacity' if asked.type == 'quantity' else 'attributes'}[{text(domain)}]"
    it = f"{group}[{text(name)}]"
    guard = f"{text(name)} in {group}"
    values = [literal(value, asked.type) for value in asked.values]
    if asked.type in ("quantity", "version"):
        operator = "==" if asked.operator == "in" else asked.operator
        compared = [f"{it}.compareTo({value}) {operator} 0" for value in values]
        return f"{guard} && {compared[0]}" if len(compared) == 1 else f"{guard} && ({' || '.join(compared)})"
    if asked.operator == "in":
        return f"{guard} && {it} in [{', '.join(values)}]"
    return f"{guard} && {it} {asked.operator} {values[0]}"


def selectors(choice: Choice, products: Sequence[str]) -> list[str]:
    """One expression each for the flavor's product, every condition, and an operator's own; all must hold."""
    product = Condition(PRODUCT, "string", "==" if len(products) == 1 else "in", tuple(products))
    return [*map(condition, (product, *choice.conditions)), *choice.cel]
