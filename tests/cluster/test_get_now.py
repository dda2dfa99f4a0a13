"""The number shown as available now is held when requested; one more is not.

    python -m tests.stack tests/cluster/test_get_now.py --answers 500

makes that many requests at random states of the fleet.
"""

import random
import time
from collections.abc import Iterator

import pytest

from allocations.capacity.headroom import Availability
from allocations.domain.allocation_spec import AllocationRequest, Constraints
from allocations.domain.phases import Phase
from allocations.models import Allocation
from allocations.requests import services
from portal.core.errors import Refused
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from quotas.catalog.models import Offering
from quotas.limits import services as limits
from quotas.limits.models import Limit
from tests.support.cluster.allocations import ended, phase, release_all, wait_for
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster
DEFAULT_ANSWERS = 12
NEW_STATE_EVERY = 4
MAX_COUNT = 24
"""The maximum count of a request: each slice by DRA has a claim and a holder, which take time to start."""
NOT_NOW = frozenset({"WaitingForQuota", "WaitingForPreemptedWorkloads", "ExceedsMaxQuota", "no_fitting_device"})
STANDS_BY_IT_S = 1.0
"""The time in which slices released a moment ago are admitted again."""
KINDS = (
    *("l40s/whole", "t4/shared", "a100/mig-1g.10gb", "a100/mig-2g.20gb", "a100/mig-3g.40gb", "h100/whole"),
    *("h100/mig-1g.10gb", "h100/mig-1g.20gb", "h100/mig-2g.20gb", "h100/mig-3g.40gb", "h100/mig-7g.80gb"),
)


@pytest.fixture
def lending(vision: Team) -> Iterator[None]:
    """Let both teams of the demo borrow from each other, of every pool."""
    rows = list(Limit.objects.filter(team__isnull=False, user=None, pool__isnull=False).select_related("team", "pool"))
    for row in rows:
        limits.set_limit(SYSTEM, *limits.holder_and_scope(row), row.nominal, borrowing=None)
    yield
    for row in rows:
        limits.set_limit(
            SYSTEM, *limits.holder_and_scope(row), row.nominal, borrowing=row.borrowing, lending=row.lending
        )


def test_what_can_be_had_now_is_held_and_one_more_is_not(
    lending: None, project: Project, member: User, request: pytest.FixtureRequest
) -> None:
    answers = int(request.config.getoption("--answers") or DEFAULT_ANSWERS)
    dice = random.Random(20261121)
    other = Project.objects.select_related("team").get(slug="language-train")
    neighbour = User.objects.get(username="language-member")
    tried = set()
    for number in range(answers):
        if number % NEW_STATE_EVERY == 0:
            release_all(project)
            release_all(other)
            crowd(dice, [(member, project), (neighbour, other)])
        eventually(lambda: is_at_rest(project, other), within_s=60)
        offering, now = random_offering(dice, project, member)
        tried.add((offering.key, now))
        if now:
            row = request_slices(member, project, offering, now)
            wait_for(row, Phase.ACTIVE)
            ended(member, row)
        assert not is_held(member, project, offering, now + 1), f"{now + 1} of {offering.key} were held, not {now}"
    release_all(other)
    assert len(tried) > 1


def is_at_rest(*projects: Project) -> bool:
    """Return whether no allocation changes: the last request may have made Kueue reclaim what the neighbour
    borrowed.
    """
    return not Allocation.objects.filter(project__in=projects, ended_at=None).exclude(phase=Phase.ACTIVE).exists()


def random_offering(dice: random.Random, project: Project, user: User) -> tuple[Offering, int]:
    """Return a random offering with its number available now, if that is not too large to try."""
    while True:
        offering = Offering.objects.select_related("pool", "flavor").get(key=dice.choice(KINDS))
        if (now := can_get_now(project, user, offering)) <= MAX_COUNT:
            return offering, now


def can_get_now(project: Project, user: User, offering: Offering) -> int:
    """Return the catalog's number."""
    return Availability([project.team], user=user, project=project).headroom(project.team, offering).can_get_now


def request_slices(user: User, project: Project, offering: Offering, count: int) -> Allocation:
    """Request slices on one node if they fit there, else on several."""
    spec = AllocationRequest(
        project.slug, offering.key, count, constraints=Constraints(spread=offering.flavor.path == "dra")
    )
    return services.request(user, spec)


def is_held(user: User, project: Project, offering: Offering, count: int) -> bool:
    """Return whether the slices were held: not if the request is refused, if Kueue has no quota or would reclaim it, or
    if the scheduler finds no device.
    """
    try:
        row = request_slices(user, project, offering, count)
    except Refused:
        return False
    eventually(lambda: phase(row) == Phase.ACTIVE or row.reason in NOT_NOW)
    stands_by = time.monotonic() + STANDS_BY_IT_S
    eventually(lambda: phase(row) == Phase.ACTIVE or time.monotonic() > stands_by)
    held = row.phase == Phase.ACTIVE
    ended(user, row)
    return held


def crowd(dice: random.Random, people: list[tuple[User, Project]]) -> None:
    """Create a random state: both teams hold some of each flavor."""
    for user, project in people:
        for _ in range(dice.randint(0, 4)):
            offering, now = random_offering(dice, project, user)
            if now:
                wait_for(request_slices(user, project, offering, dice.randint(1, now)), Phase.ACTIVE)
