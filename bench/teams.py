"""Teams for a measurement with many requests: each has a member with a token, a project, and a queue of its own.

Each has a namespace for the bare client too, in the same queue. The slices are of nodes that are added for the time of
the measurement. They are held by device plugin, where a hold needs no pod.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from typing import Any
from uuid import uuid4

from allocations.cluster import names
from allocations.cluster.kinds import KINDS
from allocations.domain.allocation_spec import AllocationRequest
from allocations.domain.objects import ResolvedSpec, Snapshot
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from allocations.reconcile import project as reconciled
from allocations.requests import services
from allocations.requests.preview import preview_request
from bench.bare import Api, Bare
from bench.through import Web, quiet
from deploy.local.fleet import api as fleet_api
from deploy.local.fleet import state
from deploy.local.runner import Local
from portal.clusters import registry
from portal.tenants import members
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Department, Project, Scope, User
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog.models import Pool, PoolUse
from quotas.limits import services as limits

OFFERING, POOL, KIND_OF_NODE = "t4/shared", "t4/gpu.shared", "t4"
SLICES_OF_NODE, BUILT_IN = 16, 2
"""Slices of a node (4 GPUs, each shared by 4), and how many nodes the local cluster has without others."""
WITHIN_S = 300


@dataclass(frozen=True)
class BenchTeam:
    """One team: its project and member, and both clients."""

    project: Project
    member: User
    web: Web
    bare: Bare
    template: ResolvedSpec
    """An allocation in the bare client's namespace."""
    numbers: Iterator[int]

    @property
    def body(self) -> dict[str, Any]:
        """Return the request for one slice."""
        return {"project": self.project.slug, "offering": OFFERING}

    def next_spec(self) -> ResolvedSpec:
        """Return the spec of another allocation of the bare client, with a number that none had before."""
        return replace(self.template, name=f"bench-{uuid4().hex[:8]}", id=str(uuid4()), number=next(self.numbers))


@contextmanager
def bench_teams(local: Local, number: int, slices: int) -> Iterator[list[BenchTeam]]:
    """Yield so many teams that can hold so many slices together; release all at the end."""
    run, of_each = f"b{uuid4().hex[:6]}", math.ceil(slices / number)
    pool = Pool.objects.get(key=POOL)
    added = math.ceil(slices / SLICES_OF_NODE)
    _add_nodes(local, added)
    api = Api(local.home, connections=number + 8)
    try:
        until(lambda: _nodes(pool) == BUILT_IN + added, "the added nodes are in the catalog")
        department = tenants.create_department(SYSTEM, run, f"Department {run}")
        teams = [_team(local, api, department, n, pool, of_each) for n in range(number)]
        workqueue.enqueue(targets.platform(registry.own()))
        until(lambda: all(_has_queue(api, team.project.namespace) for team in teams), "each project has its queue")
        for team in teams:
            team.bare.prepare()
        quiet()
        yield teams
        release(teams)
    finally:
        _add_nodes(local, 0)
    until(lambda: _nodes(pool) == BUILT_IN, "the added nodes are gone")


def release(teams: Sequence[BenchTeam]) -> None:
    """Release all live allocations of the teams, and wait until they have ended and nothing is due any more."""
    for row in live(teams).select_related("project__team__department", "requested_by"):
        services.release(row.requested_by, row)
    until(lambda: not live(teams).exists(), "all are released")
    quiet()


def live(teams: Sequence[BenchTeam]) -> Any:
    """Return the live allocations of the teams."""
    return Allocation.objects.filter(project__in=[team.project.pk for team in teams], ended_at=None)


def until(holds: Callable[[], bool], what: str, within_s: float = WITHIN_S, every_s: float = 0.2) -> None:
    """Return when the condition holds; raise TimeoutError that names it."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {within_s:g} s: {what}")
        time.sleep(every_s)


def _team(local: Local, api: Api, department: Department, n: int, pool: Pool, slices: int) -> BenchTeam:
    run = department.slug
    team = tenants.create_team(SYSTEM, department, f"{run}-team-{n}", f"Team {n}")
    member = tenants.create_user(SYSTEM, f"{run}-member-{n}", uuid4().hex)
    members.add(SYSTEM, team, member.username, "member")
    limits.set_limit(SYSTEM, team, pool, slices)
    project = tenants.create_project(SYSTEM, team, f"{run}-{n}", f"Project {n}")
    _, secret = tenants.issue_token(SYSTEM, member, "bench", [Scope.READ, Scope.REQUEST], timedelta(hours=1))
    namespace = f"{run}-bare-{n}"
    facts = replace(
        reconciled.project_facts(project, (), Snapshot(), ()), slug=namespace, namespace=namespace, people={}
    )
    preview = preview_request(member, AllocationRequest(project=project.slug, offering=OFFERING))
    template = replace(
        spec_of_row.resolved_spec(services.draft(preview)), namespace=namespace, project=namespace, team=team.slug
    )
    return BenchTeam(project, member, Web(local.home.url, secret), Bare(api, facts), template, count())


def _has_queue(api: Api, namespace: str) -> bool:
    found = api.call("GET", KINDS["LocalQueue"].path(namespace), fieldSelector=f"metadata.name={names.LOCAL_QUEUE}")
    conditions = [c for queue in found["items"] for c in queue.get("status", {}).get("conditions", ())]
    return any(c["type"] == "Active" and c["status"] == "True" for c in conditions)


def _nodes(pool: Pool) -> int:
    """Return the number of nodes whose slices are in the catalog."""
    return PoolUse.objects.get(pool=pool).total // SLICES_OF_NODE


def _add_nodes(local: Local, number: int) -> None:
    state.change(fleet_api.Api(local.kubeconfig), lambda current: state.with_extra(current, {KIND_OF_NODE: number}))
