"""Three teams that lend to each other, and what they and the platform are charged for idle GPUs."""

from typing import Any

from portal.core import clock
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Department, Team
from quotas.catalog.models import Pool
from quotas.costs.cost_rows import CostRow
from quotas.costs.questions import IdleMode, IdleView
from quotas.costs.rating import Window
from quotas.limits import services as limits
from tests.support import cost_answers
from tests.support.quotas import hour, used

OWNER = IdleView(IdleMode.OWNER)


def set_quota(at: float, holder: Team | Department, nominal: int, key: str = "l40s/gpu", **bounds: Any) -> None:
    with clock.frozen(hour(at)):
        limits.set_limit(SYSTEM, holder, Pool.objects.get(key=key), nominal, **bounds)


def sensing() -> dict[str, Team]:
    """Create the teams of the example in docs/concepts/lending.md with their quotas of eight l40s, from hour -1 on."""
    with clock.frozen(hour(-1)):
        department = tenants.create_department(SYSTEM, "sensing", "Sensing")
        teams = {
            slug: tenants.create_team(SYSTEM, department, slug, slug.title()) for slug in ("lidar", "radar", "sonar")
        }
    set_quota(-1, teams["lidar"], 4, borrowing=4, lending=3)
    set_quota(-1, teams["radar"], 2, borrowing=4)
    set_quota(-1, teams["sonar"], 2, borrowing=4)
    return teams


def hold(team: str, count: int, start: float, end: float | None, **values: Any) -> None:
    used(hour(start), None if end is None else hour(end), count, team=team, department="sensing", **values)


def cost_rows(start: float, end: float, *keys: str, idle: IdleView = OWNER, **options: Any) -> list[CostRow]:
    window = Window(hour(start), hour(end))
    return cost_answers.costs(window, keys or ("team",), now=hour(end), idle=idle, **options).rows


def costs(start: float, end: float, *keys: str, **options: Any) -> dict[str, tuple[str | None, str | None]]:
    """Return cost and idle cost by row, of a window without steps."""
    return {row.name: (row.cost, row.idle_cost) for row in cost_rows(start, end, *keys, **options)}
