"""AllocationSpec: to JSON and back, as rows and leases store it, and as the body of the REST request."""

from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

import pytest

from allocations.domain.allocation_spec import (
    AllocationRequest,
    AllocationSpec,
    Constraints,
    Labels,
    LeaseRecord,
    Sharing,
)
from allocations.domain.custom_claim import BuiltClaim, CustomClaim

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CLAIM = CustomClaim(
    {"requests": [{"count": 2}]}, BuiltClaim({"devices": {}}, {"units": 8}, Fraction(3, 7), Fraction(2))
)
SPEC = AllocationSpec(
    project="vision-train",
    offering="h100/whole",
    count=2,
    name="train",
    purpose="to try it",
    labels=Labels((("app", "train"), ("example.com/stage", ""))),
    starts_at=NOW,
    hours=Decimal("1.5"),
    ends_at=NOW,
    give_up_at=NOW,
    priority="batch",
    requeue=False,
    constraints=Constraints(spread=True, same_clique=True),
    sharing=Sharing("TimeSlicing", interval="Long"),
    claim=CLAIM,
)
RECORD = LeaseRecord("7", 3, "ada", NOW, SPEC, Decimal("5400.25"), NOW)
OF_A_RELEASE_BEFORE = (
    '{"constraints": {"spread": true}, "count": 2, "created_at": "2026-03-01T12:00:00+00:00", '
    '"ends_at": "2026-03-01T12:00:00+00:00", "id": "7", "mode": "hold", "name": "train", "offering": "h100/whole", '
    '"priority": "normal", "project": "vision-train", "purpose": "", "requested_by": "ada", "requeue": true, '
    '"starts_at": null}'
)


def test_a_spec_is_the_same_after_json_and_back():
    assert AllocationSpec.from_json(SPEC.to_json()) == SPEC


def test_a_lease_record_is_the_same_after_text_and_back():
    assert LeaseRecord.from_text(RECORD.to_text()) == RECORD


def test_a_lease_record_of_a_release_before_has_defaults_for_what_it_lacks():
    spec = AllocationSpec(
        "vision-train", "h100/whole", 2, name="train", ends_at=NOW, constraints=Constraints(spread=True)
    )
    assert LeaseRecord.from_text(OF_A_RELEASE_BEFORE) == LeaseRecord("7", None, "ada", NOW, spec)


def test_a_lease_record_is_written_as_the_releases_before_read_it():
    spec = AllocationSpec("vision-train", "h100/whole", ends_at=NOW, name="train")
    assert LeaseRecord("7", 0, "ada", NOW, spec).to_text() == (
        '{"claim": null, "constraints": {}, "count": 1, "created_at": "2026-03-01T12:00:00+00:00", '
        '"ends_at": "2026-03-01T12:00:00+00:00", "give_up_at": null, "held_seconds": "0", "held_until": null, '
        '"hours": null, "id": "7", "labels": {}, "mode": "hold", "name": "train", "number": 0, '
        '"offering": "h100/whole", "priority": "normal", "project": "vision-train", "purpose": "", '
        '"requested_by": "ada", "requeue": true, "sharing": {}, "starts_at": null}'
    )


@pytest.mark.parametrize("text", ["", "{}", "no JSON", '{"id": "7", "requested_by": "ada", "created_at": "soon"}'])
def test_what_is_no_lease_record_is_refused(text):
    with pytest.raises((KeyError, ValueError)):
        LeaseRecord.from_text(text)


def test_labels_are_written_as_pairs_with_commas():
    labels = Labels.from_text(" stage=prod , app=train, empty=")
    assert labels.to_json() == {"app": "train", "empty": "", "stage": "prod"}
    assert Labels.from_text(str(labels)) == labels
    assert not Labels.from_text("")


@pytest.mark.parametrize("text", ["app", "app=a,app=b", "app=train,stage"])
def test_text_that_is_no_labels_is_refused(text):
    with pytest.raises(ValueError, match="key=value"):
        Labels.from_text(text)


def test_only_what_is_true_or_given_is_kept_of_constraints_and_sharing():
    assert Constraints.from_json({"spread": False, "same_gpu": True}).to_json() == {"same_gpu": True}
    assert Sharing.from_json({"strategy": "MPS", "interval": None}).to_json() == {"strategy": "MPS"}
    assert Sharing().to_json() == {}


def test_a_claim_of_the_release_before_is_kept_as_it_is():
    stored = {"requests": [], "built": {"spec": {"devices": {}}, "units": {"units": 8}, "gpus": "3/7"}}
    assert CustomClaim.from_json(stored).to_json() == stored


def test_the_body_of_a_request_has_what_is_not_the_default():
    request = AllocationRequest(
        "vision-train", "h100/whole", hours=Decimal("1.50"), constraints=Constraints(spread=True)
    )
    assert request.request_body() == {
        "project": "vision-train",
        "offering": "h100/whole",
        "count": 1,
        "hours": "1.50",
        "constraints": {"spread": True},
    }
    assert AllocationRequest.from_json(request.request_body()) == request


def test_a_request_with_a_field_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="no field spread"):
        AllocationRequest.from_json({"project": "vision-train", "offering": "h100/whole", "spread": True})
