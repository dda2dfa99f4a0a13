"""The objects of a custom claim: as built, addressed by its requests, and not charged for admin access."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from allocations.claims import spec
from allocations.cluster.backends import dra
from allocations.cluster.kinds import KINDS
from allocations.cluster.manifests import custom_claim, project
from allocations.domain.custom_claim import BuiltClaim, CustomClaim
from allocations.domain.objects import ObservedObject, Ref, Snapshot
from tests.support import request_specs
from tests.support.claims import claim, schema

BUILT = spec.build(claim({"name": "big"}, {"device": "mig", "profile": "1g.10gb"}), schema().products)
REQUEST = replace(request_specs.WHOLE, kind="claim", claim=CustomClaim({}, BuiltClaim(BUILT, {}, Fraction(1))))
(PART,) = dra.parts(REQUEST)


def seen(ref: Ref, **facts: Any) -> ObservedObject:
    return ObservedObject(ref, f"{ref.kind}-uid", 1, facts=facts)


def raw(**result: Any) -> dict[str, Any]:
    """Return a claim with one allocated device."""
    given = {"request": "big", "driver": "gpu.nvidia.com", "pool": "h100-0", "device": "gpu-0"} | result
    return {"spec": {"devices": {}}, "status": {"allocation": {"devices": {"results": [given]}}}}


def test_the_claim_is_applied_as_it_was_built():
    assert dra.claim(REQUEST, PART)["spec"] == BUILT
    assert custom_claim.requests(BUILT) == ["big", "slice-1"]


def test_pods_pick_its_requests_by_number():
    guard = dra.guard_entry(REQUEST)
    assert (guard["count"], guard["requests"]) == (2, ["big", "slice-1"])
    assert "requests" not in dra.guard_entry(replace(REQUEST, claim=None))


def test_what_is_only_looked_at_is_held_but_not_charged():
    facts = KINDS["ResourceClaim"].projector(raw(adminAccess=True))
    assert facts is not None
    assert facts["devices"] == []
    (held,) = dra.held(REQUEST, Snapshot([seen(PART.claim, **facts), seen(PART.holder, phase="Running")]))
    assert (held.device, held.is_charged) == ("gpu-0", False)


def test_what_is_given_is_charged():
    facts = KINDS["ResourceClaim"].projector(raw())
    assert facts is not None
    assert "admin_devices" not in facts
    (held,) = dra.held(REQUEST, Snapshot([seen(PART.claim, **facts), seen(PART.holder, phase="Running")]))
    assert held.is_charged


def test_a_marked_project_has_the_label_for_admin_access():
    facts = project.ProjectFacts(
        "p", "p", "vision", "research", "queue", object_quota={}, other_pods=500, config_size_kib=128
    )
    assert project.ADMIN_ACCESS not in project.namespace(facts)["metadata"]["labels"]
    marked = project.namespace(replace(facts, admin_access=True))
    assert marked["metadata"]["labels"][project.ADMIN_ACCESS] == "true"
