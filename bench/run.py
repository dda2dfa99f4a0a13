"""Runs the part `holds`, in order: noise, both backends, writes and statements per allocation."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from statistics import median
from typing import Any
from uuid import uuid4

from allocations.cluster.manifests.project import ProjectFacts
from allocations.domain.allocation_spec import AllocationRequest
from allocations.domain.objects import ResolvedSpec, Snapshot
from allocations.lifecycle import spec_of_row
from allocations.reconcile import project as reconciled
from allocations.requests import services
from allocations.requests.preview import preview_request
from bench.bare import Api, Bare
from bench.statistics import compare
from bench.through import Web, quiet
from deploy.local.home import Home
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Scope, Team, User
from quotas.limits import names as queue_names
from tests.support.apiserver import OWN_WRITES, ApiServer
from tests.support.statements import StatementLog

PATHS = {"device plugin": "l40s/whole", "DRA": "h100/whole"}
WARM_UP = 2
NAMESPACE = "bench-bare"
HOLDS = 9


def holds(home: Home, rounds: int) -> dict[str, Any]:
    """Return the part ``holds`` of ``bench.json``: seconds, and ratios of the portal to the bare client."""
    member = User.objects.get(username="vision-member")
    project = Project.objects.select_related("team__department").get(slug="vision-dev")
    _, secret = tenants.issue_token(SYSTEM, member, "bench", [Scope.READ, Scope.REQUEST], timedelta(hours=1))
    web, bare = Web(home.url, secret), Bare(Api(home), _bare_project())
    bare.prepare()
    quiet()
    server, statements = ApiServer(home), StatementLog(home)
    paths = {}
    for name, offering in PATHS.items():
        body, spec = {"project": project.slug, "offering": offering}, _resolved_spec(member, project, offering)
        for _ in range(WARM_UP):
            _bare(bare, spec)
            _portal(web, body)
        paths[name] = {
            "offering": offering,
            "noise": _noise(bare, spec, rounds),
            "post_to_active": _compare_with_bare(web, body, bare, spec, rounds),
            "writes": _writes(server, web, body),
            "statements": _statements(statements, web, body),
        }
    return {"paths": paths}


def _noise(bare: Bare, spec: ResolvedSpec, rounds: int) -> dict[str, float]:
    """Compare the bare client with itself."""
    series: tuple[list[float], list[float]] = ([], [])
    for n in range(rounds):
        for side in (0, 1) if n % 2 else (1, 0):
            series[side].append(_bare(bare, spec))
    return compare(*series).document()


def _compare_with_bare(
    web: Web, body: Mapping[str, object], bare: Bare, spec: ResolvedSpec, rounds: int
) -> dict[str, float]:
    portal, bare_client = [], []
    for n in range(rounds):
        if n % 2:
            bare_client.append(_bare(bare, spec))
        portal.append(_portal(web, body))
        if not n % 2:
            bare_client.append(_bare(bare, spec))
    return compare(portal, bare_client).document()


def _writes(server: ApiServer, web: Web, body: Mapping[str, object]) -> dict[str, int]:
    """Return the portal's writes at the API server for one allocation: from request to held, and from then to
    deleted.
    """
    with server.counting_own():
        start = server.own(OWN_WRITES)
        id_, _ = web.hold(body)
        quiet()
        middle = server.own(OWN_WRITES)
        web.release(id_)
        return {"hold": middle - start, "release": server.own(OWN_WRITES) - middle}


def _statements(log: StatementLog, web: Web, body: Mapping[str, object]) -> dict[str, float]:
    """Return the SQL statements from a POST to active by process, and the worker's reconciles: medians of HOLDS."""
    counts = []
    with log.counting():
        for _ in range(HOLDS):
            start = log.position()
            id_, _ = web.hold(body)
            counts.append(log.by_process(start))
            web.release(id_)
    return {name: median(each[name] for each in counts) for name in counts[0]}


def _portal(web: Web, body: Mapping[str, object]) -> float:
    id_, seconds = web.hold(body)
    web.release(id_)
    return seconds


def _bare(bare: Bare, spec: ResolvedSpec) -> float:
    """Return the seconds of one hold by the bare client, each time of another allocation."""
    another = replace(spec, name=f"bench-{uuid4().hex[:8]}", id=str(uuid4()))
    seconds = bare.hold(another)
    bare.release(another)
    return seconds


def _resolved_spec(member: User, project: Project, offering: str) -> ResolvedSpec:
    """Return the spec that the portal would resolve, in the bare client's namespace and team."""
    preview = preview_request(member, AllocationRequest(project=project.slug, offering=offering))
    spec = spec_of_row.resolved_spec(services.draft(preview))
    team = Team.objects.select_related("department").get(slug="language")
    return replace(spec, namespace=NAMESPACE, project=NAMESPACE, team=team.slug, department=team.department.slug)


def _bare_project() -> ProjectFacts:
    """Create a project in team language, so that each side has a queue of its own."""
    project = Project.objects.select_related("team__department").get(slug="language-dev")
    facts = reconciled.project_facts(project, (), Snapshot(), ())
    queue = queue_names.cluster_queue(project.team.slug)
    return replace(facts, slug=NAMESPACE, namespace=NAMESPACE, cluster_queue=queue, guards={}, holds={}, people={})
