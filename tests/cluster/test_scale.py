"""Many allocations at once: each object is created once, and an unchanged state costs the API server nothing."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest

from allocations.cluster import client as cluster_client
from allocations.cluster.kinds import INVENTORY, KINDS
from allocations.domain.phases import Phase
from allocations.models import Allocation, AppliedObject, Transition
from deploy.local.runner import Local
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team, User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog.models import Pool, PoolUse
from quotas.limits import services as limits
from quotas.limits.models import Limit
from tests.support.apiserver import OWN_GETS, OWN_WRITES, ApiServer
from tests.support.cluster.allocations import ended, held, release_all, request_slices, wait_for
from tests.support.cluster.fixtures import Kubectl
from tests.support.cluster.hardware import Read, are_gone
from tests.support.cluster.quiet import until_nothing_is_due, until_others_are_gone
from tests.support.cluster.waiting import eventually
from tests.support.cluster.watch_events import events_since
from tests.support.clusters import LOCAL
from tests.support.people import client

pytestmark = [pytest.mark.cluster, pytest.mark.own_project, pytest.mark.usefixtures("settled")]

PROCESSES, THREADS = 4, 25
MANY, PROJECTS = 120, 3
PAGE = 50
NODES = 10  # of t4, each with 16 shared slices
ADDED = {f"t4-{2 + number}" for number in range(NODES)}
OURS = {kind.plural for kind in KINDS.values() if kind.name not in INVENTORY}
"""The kinds that the portal writes. It only lists and watches the inventory's kinds."""
OWNED = ("Workload", "ResourceClaim", "Pod", "ResourceQuota")
"""The kinds of which an allocation has objects of its own."""


@pytest.fixture(scope="module")
def apiserver(local: Local) -> Iterator[ApiServer]:
    with ApiServer(local.home).counting_own() as server:
        yield server


@pytest.mark.parametrize("offering", ["h100/whole", "l40s/whole"])
def test_a_hundred_reconciles_at_once_make_each_object_once(
    offering: str, project: Project, member: User, kubectl: Kubectl
) -> None:
    with ExitStack() as stack:
        crowd = [stack.enter_context(_reconcilers()) for _ in range(PROCESSES)]
        assert all(process.stdout and process.stdout.readline() == "ready\n" for process in crowd)
        before = _resource_version(kubectl, project)
        row = request_slices(member, project, offering)
        ends = [process.communicate(f"{row.pk}\n", timeout=180) for process in crowd]
        assert [process.returncode for process in crowd] == [0] * PROCESSES, ends
    wait_for(row, Phase.ACTIVE)
    by_claim = int(offering == "h100/whole")
    expected = {"Workload": 1, "ResourceClaim": by_claim, "Pod": by_claim, "ResourceQuota": 1}
    eventually(lambda: {kind: _created(kubectl, project, kind, before) for kind in OWNED} == expected)
    for kind, name in AppliedObject.objects.filter(target=f"local/allocation:{row.pk}").values_list("kind", "name"):
        if "/" not in kind:
            metadata = json.loads(kubectl("get", "--raw", KINDS[kind].path(project.namespace, name)))["metadata"]
            assert metadata.get("generation", 1) == 1, f"{kind} {name} was changed"
            assert AppliedObject.objects.get(kind=kind, namespace=project.namespace, name=name).uid == metadata["uid"]
    assert row.transitions.filter(type="phase", to_phase="active").count() == 1


@pytest.mark.parametrize(
    ("offering", "requested", "released"),
    [
        pytest.param(
            "l40s/whole",
            {"workloads": 1, "gpuprojects": 1, "resourcequotas": 1},
            {"gpuprojects": 1, "resourcequotas": 1, "workloads": 1},
            id="device plugin: lease, guard, quota",
        ),
        pytest.param(
            "h100/whole",
            {"workloads": 1, "gpuprojects": 1, "resourcequotas": 1, "resourceclaims": 1, "pods": 1},
            {"gpuprojects": 1, "resourcequotas": 1, "pods": 1, "resourceclaims": 1, "workloads": 1},
            id="DRA: lease, guard, quota, claim, holder",
        ),
    ],
)
def test_an_allocation_costs_one_write_per_object_and_status_step(
    offering: str,
    requested: dict[str, int],
    released: dict[str, int],
    project: Project,
    member: User,
    kubectl: Kubectl,
    apiserver: ApiServer,
) -> None:
    """The one status step is PodsReady on the lease, whose status Kueue writes too."""
    until_others_are_gone(kubectl)
    start, own_at_start = apiserver.counts(), apiserver.own(OWN_WRITES)
    row = held(member, project, offering)
    until_nothing_is_due()
    middle, own_in_between = apiserver.counts(), apiserver.own(OWN_WRITES)
    ended(member, row)
    until_nothing_is_due()
    assert apiserver.own(OWN_WRITES) - own_in_between == sum(released.values())
    assert own_in_between - own_at_start == sum(requested.values()) + 1
    applied = {r.resource: n for r, n in (middle - start).items() if r.verb == "APPLY" and r.resource in OURS}
    assert applied == requested


@pytest.fixture(scope="module")
def many(local: Local, vision: Team, member: User, read: Read) -> Iterator[list[Allocation]]:
    """Hold MANY allocations in PROJECTS projects, on nodes of their own."""
    pool = Pool.objects.get(key="t4/gpu.shared")
    nominal = Limit.objects.get(team=vision, pool=pool).nominal
    _fleet(local, "t4", NODES)
    eventually(lambda: PoolUse.objects.get(pool=pool).total > 16 * NODES, within_s=120)
    limits.set_limit(SYSTEM, vision, pool, nominal + MANY)
    projects = [tenants.create_project(SYSTEM, vision, f"t-{uuid4().hex[:10]}", "One of many") for _ in range(PROJECTS)]
    workqueue.enqueue(targets.platform(LOCAL), *(targets.project(LOCAL, p.slug) for p in projects))
    rows = [request_slices(member, project, "t4/shared") for _ in range(MANY // PROJECTS) for project in projects]
    eventually(lambda: _are_all(rows, Phase.ACTIVE), within_s=600, every_s=1)
    until_nothing_is_due()
    yield rows
    for project in projects:
        release_all(project)
    limits.set_limit(SYSTEM, vision, pool, nominal)
    _fleet(local, "t4", 0)
    eventually(lambda: are_gone(ADDED, read), within_s=120)


def test_a_second_pass_over_many_unchanged_writes_and_gets_nothing(
    many: list[Allocation], kubectl: Kubectl, apiserver: ApiServer
) -> None:
    slugs = set(Allocation.objects.filter(pk__in=[row.pk for row in many]).values_list("project__slug", flat=True))
    until_others_are_gone(kubectl)
    kept = [targets.allocation(LOCAL, row.pk) for row in many] + [targets.project(LOCAL, slug) for slug in slugs]
    counts = []
    for _ in range(2):
        workqueue.enqueue(targets.platform(LOCAL), targets.inventory(LOCAL), targets.adoption(LOCAL), *kept)
        until_nothing_is_due()
        counts.append((apiserver.own(OWN_WRITES), apiserver.own(OWN_GETS)))
    assert counts[1] == counts[0]


def test_what_is_held_stays_held_while_others_come(many: list[Allocation]) -> None:
    """They share a GpuProject per project, which is written each time another is added."""
    actives = Transition.objects.filter(allocation__in=[row.pk for row in many], type="phase", to_phase=Phase.ACTIVE)
    assert actives.count() == len(many)


def test_a_list_over_several_pages_has_each_row_once(
    many: list[Allocation], member: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what the portal reads from the API server, and of what the REST API returns, with small pages."""
    kind, api = KINDS["Workload"], cluster_client.connect(LOCAL)
    first = api.json("GET", kind.path(), query={"limit": PAGE, "labelSelector": kind.selector})
    assert (len(first["items"]), bool(first["metadata"]["continue"])) == (PAGE, True)
    monkeypatch.setattr(cluster_client, "PAGE", PAGE)
    leases, _ = api.list(kind, lambda found: (found["metadata"]["namespace"], found["metadata"]["name"]))
    expected = sorted((row.project.namespace, f"{row.name}-lease") for row in many)
    namespaces = {namespace for namespace, _ in expected}
    assert sorted(lease for lease in leases if lease[0] in namespaces) == expected
    slugs = {row.project.slug for row in many}
    assert sorted(_over_rest(member, slugs)) == sorted(str(row.pk) for row in many)


def _over_rest(person: User, projects: set[str]) -> Iterator[str]:
    """Yield the id of each allocation of the projects, page by page."""
    api, url = client(person), f"/api/v1/allocations?project={','.join(projects)}&limit={PAGE}"
    while url:
        page = api.get(url).json()
        assert len(page["results"]) <= PAGE
        yield from (row["id"] for row in page["results"])
        url = page["next"]


def _resource_version(kubectl: Kubectl, project: Project) -> str:
    """Return the present resourceVersion by the API server's own list; that of kubectl has none."""
    pods = kubectl("get", "--raw", KINDS["Pod"].path(project.namespace))
    return str(json.loads(pods)["metadata"]["resourceVersion"])


def _created(kubectl: Kubectl, project: Project, kind: str, since: str) -> int:
    """Return how many objects of the kind were created in the project's namespace after a resourceVersion."""
    events = events_since(kubectl, KINDS[kind].path(project.namespace), since)
    return [event["type"] for event in events].count("ADDED")


def _reconcilers() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.support.cluster.reconcilers", str(THREADS)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _fleet(local: Local, kind: str, extra: int) -> None:
    command = [sys.executable, "-m", "deploy.local.fleet", "--kubeconfig", str(local.kubeconfig)]
    subprocess.run([*command, "--extra", f"{kind}={extra}"], check=True, timeout=180)


def _are_all(rows: list[Allocation], phase: Phase) -> bool:
    return Allocation.objects.filter(pk__in=[row.pk for row in rows], phase=phase).count() == len(rows)
