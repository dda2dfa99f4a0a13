"""A full fleet and its users in a database: 1,000 nodes of 8 GPUs, 5,000 allocations of 20 teams. No cluster.

Nodes and slices are those of the simulated hardware, mirrored by the watcher's projection and added to the catalog by
the portal's inventory. Allocations, intervals and claims are inserted in bulk, in the form in which reconciler and
watcher leave them. Each allocation's content follows from its number, so it is the same on every machine.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import cycle, islice
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

from allocations.cluster import names
from allocations.cluster.kinds import KINDS, observe
from allocations.domain.phases import Outcome, Phase
from allocations.models import Allocation, AppliedObject, MirrorObject, Transition
from allocations.reconcile.inventory import reconcile_inventory
from demo import prices
from deploy.local.fleet import publisher, spec
from portal.clusters import registry
from portal.core import clock
from portal.tenants import members
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import PlatformRole, Project, Team, User
from portal.workqueue import targets
from quotas.catalog import services as catalog
from quotas.catalog.layouts import Placement, first_fit
from quotas.catalog.mig_tables import TABLES
from quotas.catalog.models import Flavor, Offering, Pool
from quotas.catalog.nvidia import DRA_DRIVER
from quotas.limits import services as limits
from quotas.metering.models import UsageInterval

NODES = {"h100": 500, "l40s": 200, "a100": 200, "t4": 100}
GPUS = 8
TEAMS, PROJECTS_OF_TEAM = 20, 5
DIVIDED_GPUS, WHOLE_GPUS = 600, 500
"""Numbers of GPUs of the first kind that have MIG instances, and that are held whole."""
PATTERN = ("3g.40gb", "2g.20gb", "1g.10gb")
"""Instances on a divided GPU; one GPU in three lacks the last."""
BY_COUNT = {"l40s/whole": 900, "a100/mig-1g.10gb": 500, "t4/shared": 400}
QUEUED, ENDED = 600, 500
BATCH = 2000


@dataclass(frozen=True)
class Crowd:
    """The users: ``person`` is an operator, who sees everything, and a member of ``team``, which holds a
    twentieth.
    """

    person: User
    team: Team
    project: Project


@dataclass(frozen=True)
class Held:
    """An allocation: its offering and, with DRA, its device."""

    offering: str
    node: str = ""
    device: str = ""


def fill() -> Crowd:
    """Fill an empty database."""
    _fleet()
    team, *others = _teams()
    person = tenants.create_user(SYSTEM, "operator", uuid4().hex, platform_role=PlatformRole.OPERATOR)
    people = {one.pk: tenants.create_user(SYSTEM, f"{one.slug}-member", uuid4().hex) for one in others} | {
        team.pk: person
    }
    members.add(SYSTEM, team, person.username, "member")
    projects = [
        tenants.create_project(SYSTEM, one, f"{one.slug}-{n}", f"Project {n}")
        for n in range(PROJECTS_OF_TEAM)
        for one in (team, *others)
    ]
    _allocations(projects, people)
    return Crowd(person, team, projects[0])


def _fleet() -> None:
    fleet = spec.load(spec.FLEET_FILE)
    kinds = tuple(replace(kind, nodes=NODES.get(kind.name, 0), gpus=GPUS) for kind in fleet.kinds)
    nodes, pools = publisher.desired(replace(fleet, kinds=kinds), {}, {})
    _mirror("Node", (_ready(node) for node in nodes.values()))
    _mirror("ResourceSlice", (_published(name, one) for pool in pools.values() for name, one in pool.items()))
    reconcile_inventory(registry.own())
    for flavor in Flavor.objects.all():
        catalog.accept_flavor(SYSTEM, flavor)
    prices.price()


def _mirror(kind: str, objects: Iterator[dict[str, Any]]) -> None:
    seen = (observe(KINDS[kind], raw, at=clock.now(), live=False) for raw in objects)
    rows = (
        MirrorObject(
            cluster_id=registry.own(),
            kind=kind,
            namespace=one.ref.namespace,
            name=one.ref.name,
            uid=one.uid,
            resource_version=one.resource_version,
            allocation=one.allocation,
            facts=one.facts or {},
            seen_at=one.at,
        )
        for one in seen
        if one
    )
    while batch := list(islice(rows, BATCH)):
        MirrorObject.objects.bulk_create(batch)


def _ready(node: dict[str, Any]) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True"}
    metadata = {**node["metadata"], "uid": str(uuid4()), "resourceVersion": "1"}
    return {**node, "metadata": metadata, "status": {**node["status"], "conditions": [ready]}}


def _published(name: str, one: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "uid": str(uuid4()), "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {**one, "pool": {**one["pool"], "generation": 1}}}


def _teams() -> list[Team]:
    department = tenants.create_department(SYSTEM, "research", "Research")
    teams = [tenants.create_team(SYSTEM, department, f"team-{n}", f"Team {n}") for n in range(TEAMS)]
    for pool in Pool.objects.select_related("use"):
        for team in teams:
            limits.set_limit(SYSTEM, team, pool, pool.use.total // TEAMS)
    return teams


def _held() -> Iterator[Held]:
    """Return the allocations; with DRA GPU by GPU, first the divided ones, then the whole ones; the others by
    count.
    """
    geometry = TABLES["H100-80GB"]
    gpus = ((f"h100-{n % NODES['h100']}", f"gpu-{n // NODES['h100']}") for n in range(NODES["h100"] * GPUS))
    for number, (node, gpu) in enumerate(islice(gpus, DIVIDED_GPUS)):
        placements: set[Placement] = set()
        for profile in PATTERN[: 3 if number % 3 else 2]:
            placement = first_fit(geometry, placements, profile)
            assert placement is not None
            placements.add(placement)
            device = f"{gpu}-mig-{profile.replace('.', '')}-{geometry.profile(profile).gi_id}-{placement.start}"
            yield Held(f"h100/mig-{profile}", node, device)
    yield from (Held("h100/whole", node, gpu) for node, gpu in islice(gpus, WHOLE_GPUS))
    yield from (Held(offering) for offering, count in BY_COUNT.items() for _ in range(count))


def _allocations(projects: list[Project], people: Mapping[int, User]) -> None:
    offerings = {one.key: one for one in Offering.objects.select_related("flavor")}
    held = list(_held())
    contents = [(one, Phase.ACTIVE) for one in held]
    contents += [(Held("h100/whole"), Phase.QUEUED)] * QUEUED + [(Held("l40s/whole"), Phase.ENDED)] * ENDED
    rows = []
    for number, ((one, phase), project) in enumerate(zip(contents, cycle(projects), strict=False)):
        begin = clock.now() - timedelta(hours=6, seconds=number)
        is_over = phase == Phase.ENDED
        row = Allocation(
            id=uuid5(NAMESPACE_URL, str(number)),
            name=f"a-{number}",
            number=number // len(projects),
            project=project,
            offering=offerings[one.offering],
            requested_by=people[project.team_id],
            count=1,
            purpose="Measured, not used.",
            created_at=begin,
            ends_at=begin + timedelta(hours=48),
            desired="released" if is_over else "held",
            phase=phase,
            phase_since=begin,
            reason="held",
            message="Your GPUs are ready.",
            held_at=None if phase == Phase.QUEUED else begin,
            ended_at=clock.now() if is_over else None,
            outcome=Outcome.RELEASED if is_over else "",
        )
        rows.append((row, one))
    Allocation.objects.bulk_create([row for row, _ in rows], batch_size=BATCH)
    Transition.objects.bulk_create([t for row, _ in rows for t in _transitions(row)], batch_size=BATCH)
    held_rows = [(row, one) for row, one in rows if row.held_at]
    UsageInterval.objects.bulk_create([_interval(row, one) for row, one in held_rows], batch_size=BATCH)
    AppliedObject.objects.bulk_create([a for row, one in held_rows for a in _applied(row, one)], batch_size=BATCH)
    MirrorObject.objects.bulk_create([_claim(row, one) for row, one in held_rows if one.device], batch_size=BATCH)


def _transitions(row: Allocation) -> Iterator[Transition]:
    for phase in (Phase.QUEUED, Phase.STARTING, row.phase):
        at = row.created_at
        yield Transition(allocation=row, at=at, recorded_at=at, type="phase", to_phase=phase, actor="portal")


def _interval(row: Allocation, one: Held) -> UsageInterval:
    team = row.project.team
    assert row.held_at is not None
    return UsageInterval(
        key=uuid4(),
        holder_id=row.pk,
        slot=f"{registry.own()}/{one.node}/{one.device}" if one.device else f"{row.pk}/{row.offering.flavor.name}",
        start=row.held_at,
        end=row.ended_at,
        gpu_share_numerator=row.offering.gpu_share.numerator,
        gpu_share_denominator=row.offering.gpu_share.denominator,
        count=1,
        offering=row.offering.key,
        flavor=row.offering.flavor.name,
        kind=row.offering.kind,
        cluster_id=registry.own(),
        node=one.node,
        device_uuid=str(_uuid(one.node, one.device)) if one.device else "",
        department=team.department.slug,
        team=team.slug,
        project=row.project.slug,
        member=row.requested_by.username,
        namespace=row.project.namespace,
        source_start={"kind": "bench"},
        source_end={"kind": "bench"} if row.ended_at else None,
        recorded_at=row.held_at,
    )


def _uuid(node: str, device: str) -> UUID:
    return uuid5(NAMESPACE_URL, f"{node}/{device}")


def _applied(row: Allocation, one: Held) -> Iterator[AppliedObject]:
    own = {"Workload": names.lease(row.name)}
    if one.device:
        own |= {"ResourceClaim": names.claim(row.name), "Pod": names.holder(row.name)}
    for kind, name in own.items() if not row.ended_at else ():
        yield AppliedObject(
            cluster_id=registry.own(),
            target=targets.allocation(registry.own(), row.pk),
            kind=kind,
            namespace=row.project.namespace,
            name=name,
            uid=str(uuid4()),
            resource_version=1,
            intent="",
            digest="",
            applied_at=row.created_at,
        )


def _claim(row: Allocation, one: Held) -> MirrorObject:
    device = {"request": "slice-0", "driver": DRA_DRIVER, "pool": one.node, "device": one.device}
    return MirrorObject(
        cluster_id=registry.own(),
        kind="ResourceClaim",
        namespace=row.project.namespace,
        name=names.claim(row.name),
        uid=str(uuid4()),
        resource_version=1,
        allocation=row.name,
        facts={"devices": [device], "allocated_at": "", "cards": [""]},
        seen_at=row.created_at,
    )
