"""Flavors as lines of a table."""

from dataclasses import dataclass

from frontend.tables import Column
from quotas.catalog.models import Flavor

FLAVORS = (
    Column("name", "Flavor", "row.name"),
    Column("product", "Product", "row.product"),
    Column("cluster", "Cluster", "row.cluster_id"),
    Column("state", "State", "state"),
    Column("offerings", "Offerings"),
    Column("nodes", "Nodes", "row.node_count"),
)
NODES = (
    Column("name", "Node", "name"),
    Column("state", "State", "ready"),
    Column("capacity", "Capacity"),
    Column("problem", "Problem", "problem"),
)


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
