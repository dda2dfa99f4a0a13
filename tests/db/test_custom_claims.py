"""Requests of custom claims: their demand, their refusals, their cost, and their record."""

from decimal import Decimal
from fractions import Fraction

import pytest

from allocations.capacity.headroom import Availability
from allocations.domain.allocation_spec import AllocationRequest, Constraints
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.phases import Phase
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, MirrorObject
from allocations.requests import custom_claims, details, services
from allocations.requests.preview import preview_request
from portal.core.errors import Forbidden, Invalid, Refused
from quotas.catalog.models import Node, Offering
from tests.support.claim_rows import h100_node, hold_devices
from tests.support.people import client, person

pytestmark = pytest.mark.django_db
COMPUTE, MEMORY = "gpu-portal.io/compute-slices", "gpu-portal.io/memory-slices"

ONE = CustomClaim({"requests": [{"count": 1}]})


@pytest.fixture
def fleet(team):
    h100_node(team)


def claim_request(*requests, **parts) -> AllocationRequest:
    return AllocationRequest(
        project="vision-train", offering="h100/claim", claim=CustomClaim({"requests": list(requests), **parts})
    )


def test_a_claim_is_kept_with_what_it_came_to(fleet, member, project):
    row = services.request(member, claim_request({"device": "gpu", "count": 2}))
    assert custom_claims.requested_document(row.claim) == {"requests": [{"device": "gpu", "count": 2}]}
    asked = spec_of_row.resolved_spec(spec_of_row.rows().get(pk=row.pk))
    assert asked.requests == {COMPUTE: 14, MEMORY: 16}
    assert asked.claim_spec is not None
    assert asked.claim_spec["devices"]["requests"][0]["exactly"]["count"] == 2


def test_its_price_is_that_of_the_most_it_can_take(fleet, member, project):
    assert preview_request(member, claim_request({"count": 2})).price_per_hour == Fraction(32, 5)
    small = preview_request(member, claim_request({"device": "mig", "profile": "1g.10gb"}))
    assert small.price_per_hour == Fraction(16, 5) / 7


def test_it_costs_that_price_once_asked(fleet, member, project):
    row = services.request(member, claim_request({"count": 2}))
    detail = details.by_id([row])[row.pk]
    assert detail.per_hour == Fraction(32, 5)


def test_mps_is_not_for_gpus_that_are_cut_on_demand(fleet, member, project):
    with pytest.raises(Invalid, match="TimeSlicing") as refused:
        preview_request(member, claim_request({"count": 1}, config=[{"sharing": {"strategy": "MPS"}}]))
    assert list(refused.value.errors) == ["claim.config[0].sharing.strategy"]


def test_what_kubernetes_would_not_take_for_its_length_is_told_beforehand(fleet, member, project):
    values = [f"{number}{'é' * 62}" for number in range(32)]
    long = {"name": "productName", "operator": "in", "value": values}
    with pytest.raises(Invalid) as refused:
        preview_request(member, claim_request({"attributes": [long, long, long]}))
    assert list(refused.value.errors) == ["claim.requests[0]"]


def test_it_counts_against_the_teams_quota_once_its_lease_reserves(fleet, member, project, team):
    row = services.request(member, claim_request({"count": 3}))
    Allocation.objects.filter(pk=row.pk).update(phase=Phase.ACTIVE)
    assert Availability([team]).headroom(team, Offering.objects.get(key="h100/whole")).can_get_now == 1
    assert preview_request(member, claim_request({"count": 1})).fits == "now"
    assert preview_request(member, claim_request({"count": 2})).fits == "queue"
    assert preview_request(member, AllocationRequest("vision-train", "h100/whole", 2)).fits == "queue"


def test_more_than_the_quota_is_refused_with_the_pool(fleet, member, project):
    with pytest.raises(Refused) as refused:
        services.request(member, claim_request({"count": 5}))
    (violation,) = refused.value.violations
    assert (violation.reason, violation.dimension) == ("quota_exceeded", "team:h100/slices")
    assert (violation.limit, violation.used, violation.requested) == (4, 0, 5)


def test_what_can_never_be_held_is_refused_with_what_would(fleet, member, project):
    with pytest.raises(Refused) as refused:
        services.request(member, claim_request({"count": 9}))
    assert refused.value.violations[0].reason == "never_fits"
    assert refused.value.violations[0].hint == "Ask for at most 8."


def test_what_the_scheduler_would_search_too_long_for_is_refused_before_anything_is_queued(fleet, member, project):
    order = [
        {"name": "small", "device": "mig", "profile": "1g.10gb", "count": 25},
        {"name": "large", "device": "mig", "profile": "4g.40gb", "count": 5},
    ]
    with pytest.raises(Refused) as refused:
        services.request(member, claim_request(*order))
    violation = refused.value.violations[0]
    assert (violation.reason, violation.dimension) == ("too_complex", "node:h100/claim")
    assert violation.detail.startswith("claim.requests: ")
    assert violation.hint == "List the requests for the largest devices first: large, small."
    assert not Allocation.objects.exists()


def test_devices_that_others_have_make_it_wait(fleet, member, project):
    hold_devices(*(f"gpu-{gpu}-mig-1g10gb-19-6" for gpu in range(7)))
    assert preview_request(member, claim_request({"count": 1})).fits == "now"
    assert preview_request(member, claim_request({"count": 2})).fits == "queue"
    assert preview_request(member, claim_request({"device": "mig", "profile": "3g.40gb", "count": 7})).fits == "now"


def test_it_waits_where_others_use_the_share_that_goes_with_its_gpus(fleet, member, project):
    """Of eight GPUs, pods outside the portal leave the share of two and a half; one is in use."""
    Node.objects.update(blocked_gpus=Decimal("5.5"))
    hold_devices("gpu-0")

    def fits(*requests) -> str:
        return preview_request(member, claim_request(*requests)).fits

    assert preview_request(member, AllocationRequest("vision-train", "h100/whole", 2)).fits == "queue"
    assert [fits({"count": 1}), fits({"count": 2})] == ["now", "queue"]
    halves = {"device": "mig", "profile": "3g.40gb"}
    assert [fits({**halves, "count": 3}), fits({**halves, "count": 4})] == ["now", "queue"]
    assert fits({"alternatives": [{"count": 2}, {"count": 1}]}) == "now"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (AllocationRequest("vision-train", "h100/claim"), "claim"),
        (AllocationRequest("vision-train", "h100/whole", claim=ONE), "claim"),
        (AllocationRequest("vision-train", "h100/claim", 2, claim=ONE), "count"),
        (
            AllocationRequest("vision-train", "h100/claim", constraints=Constraints(spread=True), claim=ONE),
            "constraints",
        ),
        (AllocationRequest("vision-train", "h100/claim", claim=CustomClaim({})), "claim.requests"),
    ],
)
def test_what_does_not_go_together_is_named_by_field(fleet, member, project, wrong, field):
    with pytest.raises(Invalid) as invalid:
        preview_request(member, wrong)
    assert field in invalid.value.errors


@pytest.mark.parametrize("alone", [{"cel": ["true"]}, {"admin_access": True}])
def test_operators_alone_may_write_cel_and_look_at_what_others_have(fleet, member, project, alone):
    with pytest.raises(Forbidden):
        preview_request(member, claim_request({"device": "gpu", **alone}))


def test_admin_access_needs_a_marked_project_and_draws_nothing(fleet, team, project):
    operator = person(team, platform_role="operator")
    look = claim_request({"device": "gpu", "count": "all", "admin_access": True})
    with pytest.raises(Refused, match="not marked"):
        services.request(operator, look)
    project.admin_access = True
    project.save()
    row = services.request(operator, look)
    assert row.claim is not None
    assert row.claim["built"]["units"] == {}
    assert preview_request(operator, look).price_per_hour == 0


def test_without_published_devices_it_says_so(fleet, member, project):
    MirrorObject.objects.all().delete()
    with pytest.raises(Refused, match="No device"):
        preview_request(member, claim_request({"count": 1}))


def test_the_device_schema_is_served(fleet, member):
    answer = client(member).get("/api/v1/offerings/h100/claim/device-schema")
    assert answer.status_code == 200
    words = answer.json()
    assert words["devices"] == ["gpu", "mig"]
    assert {"name": "architecture", "type": "string", "values": ["Hopper"], "devices": ["gpu", "mig"]} in words[
        "attributes"
    ]
    assert client(member).get("/api/v1/offerings/h100%2Fclaim/device-schema").status_code == 200
    for nothing in ("h100/whole", "x/claim"):
        assert client(member).get(f"/api/v1/offerings/{nothing}/device-schema").status_code == 404


def test_the_rest_answer_names_the_field(fleet, member, project):
    body = {"project": "vision-train", "offering": "h100/claim", "claim": {"requests": [{"count": "2"}]}}
    answer = client(member).post("/api/v1/allocations/preview", body, format="json")
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == ["claim.requests[0].count"]
    body["claim"] = {"requests": [{"count": 2}]}
    answer = client(member).post("/api/v1/allocations/preview", body, format="json").json()
    assert [one["kind"] for one in answer["manifests"]] == ["Workload", "ResourceClaim", "Pod"]
