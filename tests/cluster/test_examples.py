"""What Connect hands out starts: each example of each offering, on as many slices as are held.

Each pod is created as the tenant, without being stored, and held against the hold quota of its allocation.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from random import Random

import pytest

from allocations.cluster.backends import registry
from allocations.cluster.manifests import hold_quota
from allocations.connect import example_jobs, sample_pod
from allocations.domain.objects import Manifest, ResolvedSpec
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from deploy.local.runner import Local
from portal.tenants.models import Project, User
from quotas.catalog import quantities
from quotas.catalog.models import Kind, Offering
from tests.support import sizes
from tests.support.cluster.guarded import Guarded, guarded

pytestmark = pytest.mark.cluster
EXAMPLES = (sample_pod.build, example_jobs.job, example_jobs.pytorch, example_jobs.deployment)
MOST = 8
AT_ONCE = 128
"""Allocations in one GpuProject, which has at most 256."""


@pytest.fixture(scope="module")
def specs(member: User) -> list[ResolvedSpec]:
    """Return a hold of 1 to 8 slices of every offering, and by DRA one of slices that may be on several nodes."""
    project = Project.objects.select_related("team__department").get(slug="vision-train")
    offerings = (
        Offering.objects.select_related("flavor").filter(flavor__accepted=True).exclude(kind=Kind.CLAIM).order_by("key")
    )
    rows = [
        Allocation(
            project=project,
            offering=offering,
            requested_by=member,
            count=count,
            number=0,
            name=f"{re.sub('[^a-z0-9]', '-', offering.key)}-{count}{'-spread' if spread else ''}",
            constraints={"spread": True} if spread else {},
        )
        for offering in offerings
        for count in range(1, MOST + 1)
        for spread in ([False, True] if offering.flavor.path == "dra" else [False])
    ]
    return [spec_of_row.resolved_spec(row) for row in rows]


@pytest.fixture(scope="module")
def place(local: Local) -> Iterator[Guarded]:
    with guarded(local.home) as place:
        yield place


def drawn(specs: list[ResolvedSpec]) -> list[ResolvedSpec]:
    """Return all shares of GPUs, of which a pod gets one, and some of the others."""
    shared = [spec for spec in specs if spec.is_shared]
    others = [spec for spec in specs if not spec.is_shared]
    return [*shared, *Random(11).sample(others, sizes.size(24, len(others)))]


def test_every_example_of_every_offering_starts(place: Guarded, specs: list[ResolvedSpec]) -> None:
    chosen = drawn(specs)
    wrong: list[str] = []
    for start in range(0, len(chosen), AT_ONCE):
        some = chosen[start : start + AT_ONCE]
        place.write({"allocations": {spec.name: registry.backend_of(spec).guard_entry(spec) for spec in some}})
        wrong += [
            f"{spec.name}: {problem}"
            for spec in some
            for build in EXAMPLES
            for problem in problems(place, spec, build(spec))
        ]
    assert {spec.offering for spec in specs} >= {"t4/shared", "l40s/whole", "h100/whole", "a100/mig-1g.10gb"}
    assert not wrong, "\n".join(wrong)


def problems(place: Guarded, spec: ResolvedSpec, manifest: Manifest) -> Iterator[str]:
    """Yield why the object or its pod would not start, or what is warned of."""
    manifest["metadata"]["namespace"] = place.namespace
    answer = place.dry_run(manifest)
    if answer.status != 201 or answer.warnings:
        yield f"{manifest['kind']} {answer.message or answer.warnings}"
    pod = manifest if manifest["kind"] == "Pod" else {**manifest["spec"]["template"], "apiVersion": "v1", "kind": "Pod"}
    answer = place.dry_run({**pod, "metadata": {**pod["metadata"], "name": "example", "namespace": place.namespace}})
    if answer.status != 201:
        yield f"its pod {answer.message}"
        return
    [container] = answer.body["spec"]["containers"]
    for key, most in allowed(spec).items():
        if quantities.value(container["resources"]["requests"].get(key, "0")) > most:
            yield f"its pod asks for {container['resources']['requests']}, and {most} of {key} are in the hold quota"


def allowed(spec: ResolvedSpec) -> dict[str, Fraction]:
    """Return what the hold quota of the allocation allows, by resource."""
    amounts = registry.backend_of(spec).quota(spec)
    hard = hold_quota.build(spec.namespace, 0, {}, hold_quota.hold(spec, amounts), [])["spec"]["hard"]
    return {key.removeprefix("requests."): quantities.value(most) for key, most in hard.items() if key != "pods"}
