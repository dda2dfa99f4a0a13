"""Flavors as lines of a table."""

from dataclasses import dataclass

from quotas.catalog.models import Flavor


@dataclass(frozen=True)
class FlavorLine:
    row: Flavor
    state: str
    offerings: list[str]
    nodes: str
    problems: int


def line(row: Flavor) -> FlavorLine:
    """Return the line of a flavor that is annotated with the numbers of its nodes."""
    count, ready, problems = (getattr(row, f"{name}_count") for name in ("node", "ready", "problem"))
    keys = sorted(one.key for one in row.offerings.all())
    return FlavorLine(row, state(row), keys, f"{ready} of {count} ready" if count else "none", problems)


def state(row: Flavor) -> str:
    """Return what REST says as the flavor's ``state``."""
    return "proposed" if not row.accepted else "hidden" if row.hidden else "offered"
