"""A member attacks for minutes with ordinary permissions, and another team works as if there were no attack.

    python -m tests.stack tests/cluster/test_hostile_member.py --minutes 10 --compare --seed 3
    python -m tests.stack tests/cluster/test_hostile_member.py --minutes 2 --attacks "full objects,lists"

With ``--compare`` the other team works for two minutes without the attack first, and its medians with it stay within
twice those and a quarter of a second. That needs a machine without other load, so `make test` does not compare. All
requests come from the seed, each kind of attack from threads of its own, as fast as it is answered.
The attacker's process has low priority: what its requests cost the servers counts, the client's own work does not,
since a remote member has a machine of its own. Its requests to the portal come from an address of its own.
"""

import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import psutil
import pytest
import requests

from allocations.cluster.errors import ClusterRefused
from allocations.models import Allocation
from bench.through import Web
from deploy.local.runner import Local
from portal.core import clock
from portal.tenants import members
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Role, Scope, Team, User
from tests.cluster.hostile_member import aftermath, attacks, etcd, measures, probes, processors, tally, web
from tests.cluster.hostile_member.__main__ import Task
from tests.cluster.hostile_member.activities import measured
from tests.cluster.hostile_member.calls import AttackContext
from tests.cluster.hostile_member.etcd import MIB, Etcd, Size
from tests.cluster.hostile_member.neighbour import Login, Neighbour
from tests.cluster.hostile_member.process import AttackProcess
from tests.cluster.hostile_member.sender import MemberAccess
from tests.support.cluster.allocations import release_all
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.judge import over_allocated
from tests.support.cluster.preflight import preflight
from tests.support.cluster.tenants import own_namespace, own_projects, token_of
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster
CALM_S, CALM_BRIEFLY_S = 120.0, 10.0
"""How long the other team works without the attack: for times to compare with, and otherwise."""
HELD = ("own-1", "own-2")
"""The attacker's allocations: many small requests with few devices."""
PORTAL_LOGS = ("worker", "beat", "watcher")


@dataclass(frozen=True)
class Attacker:
    """``tenant`` has the token of the attacker's kubeconfig."""

    user: User
    project: Project
    access: MemberAccess
    tenant: ApiClient

    def names(self) -> tuple[str, ...]:
        """Return the names by which all of the attacker's objects can be recognized, in logs too."""
        rows = Allocation.objects.filter(project=self.project).values_list("pk", flat=True)
        return (self.project.slug, self.user.username, *map(str, rows))


@pytest.fixture(scope="module", autouse=True)
def minutes(pytestconfig: pytest.Config) -> float:
    access = float(pytestconfig.getoption("minutes"))
    if not access:
        pytest.skip("takes minutes: --minutes 2")
    return access


@pytest.fixture
def is_compared(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("compare"))


@pytest.fixture(scope="module")
def web_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("web") / "web.log"


@pytest.fixture(scope="module")
def url(local: Local, web_log: Path) -> Iterator[str]:
    """Yield the URL of a web process with production limits."""
    with web.serving(local, web_log) as address:
        yield address


@pytest.fixture
def operator() -> User:
    return User.objects.get(username="operator")


@pytest.fixture
def neighbour(local: Local, url: str, admin: ApiClient) -> Iterator[Neighbour]:
    """Create leads of team language with a project; yield their work."""
    team = Team.objects.get(slug="language")
    with _people(team, Role.LEAD, 3) as people:
        [project] = own_projects(team, 1, admin)
        user = next(iter(people))
        tenant = ApiClient(local.home, token_of(user))
        pods = f"/api/v1/namespaces/{project.namespace}/pods"
        eventually(lambda: tenant.call("GET", pods).status == 200, ClusterRefused)
        logins = [Login(user.username, password) for user, password in people.items()]
        yield Neighbour(url, _token(user), logins, tenant, project)
        release_all(project)


@pytest.fixture
def attacker(local: Local, url: str, vision: Team, operator: User, admin: ApiClient) -> Iterator[Attacker]:
    """Create a member of team vision with a project, two allocations, and the kubeconfig from REST."""
    with _people(vision, Role.MEMBER, 1) as people:
        [(user, password)] = people.items()
        [project] = own_projects(vision, 1, admin)
        token = _token(user)
        portal = Web(url, token)
        bodies = [{"project": project.slug, "offering": "t4/shared", "name": name} for name in HELD]
        first, *_ = [portal.hold(body)[0] for body in bodies]
        access = MemberAccess(_kubeconfig(url, token, first), url, token, user.username, password)
        yield Attacker(user, project, access, ApiClient(local.home, token_of(user)))
        project.refresh_from_db()
        if project.archived_at is None:
            aftermath.archive(operator, project, admin)


@contextmanager
def _people(team: Team, role: str, number: int) -> Iterator[dict[User, str]]:
    """Create people with passwords in the team until the block ends."""
    people: dict[User, str] = {}
    for _ in range(number):
        password = secrets.token_urlsafe(12)
        user = tenants.create_user(SYSTEM, f"person-{uuid4().hex[:8]}", password)
        members.add(SYSTEM, team, user.username, role)
        people[user] = password
    yield people
    for user in people:
        members.remove(SYSTEM, team, user.username)


def _token(user: User) -> str:
    return tenants.issue_token(SYSTEM, user, "test", Scope.values, timedelta(hours=2))[1]


def _kubeconfig(url: str, token: str, allocation: UUID) -> str:
    """Return the kubeconfig from `connect`, once the person's service account exists."""

    def ask() -> str:
        headers = {"Authorization": f"Bearer {token}"}
        answer = requests.get(f"{url}/api/v1/allocations/{allocation}/connect", headers=headers, timeout=30)
        assert answer.ok, answer.text
        return str(answer.json()["kubeconfig"])

    return eventually(ask, AssertionError)


@pytest.fixture
def unmanaged(admin: ApiClient) -> Iterator[str]:
    """Create a namespace that is no project."""
    name = own_namespace(admin)
    yield name
    admin.delete("namespace", name)


@pytest.fixture
def task(pytestconfig: pytest.Config, minutes: float, attacker: Attacker) -> Task:
    project = attacker.project
    context = AttackContext(
        namespace=project.namespace,
        project=project.slug,
        team=project.team.slug,
        allocations=HELD,
        other_team="language",
        others=("vision-lead", "language-member", "language-lead"),
        tomorrow=(clock.now() + timedelta(days=1)).isoformat(),
    )
    options = pytestconfig.getoption
    return Task(int(options("seed")), 60 * minutes, options("attacks"), attacker.access, context)


def report(*lines: str) -> None:
    """Print to standard output, which pytest shows for failed tests, and for others with -rP."""
    sys.stdout.writelines(f"{line}\n" for line in lines)


def test_a_hostile_member_slows_nobody_fills_nothing_and_leaves_nothing_behind(
    task: Task,
    is_compared: bool,
    attacker: Attacker,
    neighbour: Neighbour,
    operator: User,
    admin: ApiClient,
    unmanaged: str,
    local: Local,
    url: str,
    web_log: Path,
    tmp_path: Path,
) -> None:
    report(f"replay with: --minutes {task.seconds / 60:g} --seed {task.seed} --attacks '{task.attacks}'")
    kinds, metrics_token = attacks.chosen(task.attacks), local.home.secret("metrics")
    readiness, gauges = _readiness(local), aftermath.gauges(url, metrics_token)
    marks = aftermath.LogMarks({"web": web_log, **{name: local.home.log(name) for name in PORTAL_LOGS}})
    sizes: list[Size] = []
    at_work = [
        *neighbour.activities(),
        probes.watcher(admin, unmanaged),
        probes.size(Etcd(local.home), sizes),
    ]

    used = [processors.sample(_pids(local))]
    calm_until = time.monotonic() + (CALM_S if is_compared else CALM_BRIEFLY_S)
    calm = measured(at_work, lambda: time.monotonic() >= calm_until)
    used.append(processors.sample(_pids(local)))
    before, sizes[:] = sizes[-1], []
    attack = AttackProcess(task, tmp_path)
    try:
        pids = _pids(local)
        used.append(processors.sample(pids))
        attacked = measured(at_work, attack.is_over)
        used.append(processors.sample(pids))
        tallies = attack.tallies()
    finally:
        attack.kill()
    report(*measures.table(calm.series, attacked.series), _growth(before, sizes), *tally.table(kinds, tallies))
    report(processors.line("without him", *used[:2]), processors.line("with him", *used[2:]))
    report(*tally.details(kinds, tallies))

    names = attacker.names()
    aftermath.delete_own(attacker.tenant, attacker.project.namespace)
    aftermath.archive(operator, attacker.project, admin)
    aftermath.wait_until_well(url, metrics_token, gauges)
    wrong = [
        *(f"the other team: {problem}" for problem in calm.problems + attacked.problems),
        *(measures.slower(calm.series, attacked.series) if is_compared else ()),
        *measures.late(attacked.series),
        *tally.findings(kinds, tallies, task.seconds),
        *_too_large(before, sizes),
        *over_allocated(admin),
        *marks.errors_since(names),
    ]
    assert not wrong, "\n".join(wrong)
    assert _readiness(local) == readiness


def _pids(local: Local) -> dict[str, int]:
    """Return the processes of the stack, the web process with the limits of production and, while he runs, the attacker
    among them.
    """
    children = {" ".join(child.cmdline()): child.pid for child in psutil.Process().children()}
    own = {"web (production limits)": "gunicorn", "the attacker": "tests.cluster.hostile_member"}
    found = {name: pid for name, text in own.items() for command, pid in children.items() if text in command}
    return local.pids() | found


def _readiness(local: Local) -> dict[str, str]:
    """Return preflight's findings by check; amounts in them may differ."""
    _, found = preflight(f"--kueue-config={local.root / 'kueue' / 'config.yaml'}")
    return {check: finding["status"] for check, finding in found.items()}


def _growth(before: Size, sizes: list[Size]) -> str:
    most, used = max(one.total for one in sizes), max(one.in_use for one in sizes)
    return (
        f"etcd: {before.total / MIB:.0f} MiB before, {most / MIB:.0f} MiB at the most, {used / MIB:.0f} MiB of it in "
        f"use; a project can store {etcd.bound() / MIB:.0f} MiB, and writes end at {before.quota / MIB:.0f} MiB"
    )


def _too_large(before: Size, sizes: list[Size]) -> Iterator[str]:
    grown = max(one.total for one in sizes) - before.total
    if grown > etcd.bound():
        yield f"etcd grew by {grown / MIB:.0f} MiB, and a project can store {etcd.bound() / MIB:.0f} MiB"
