"""Isolation levels, and when to warn about training on slices that are not isolated."""

from fractions import Fraction

import pytest

from allocations.domain.allocation_spec import Sharing
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.isolation import Isolation, of_allocation, of_slice
from allocations.requests.advice import warnings

SHARED = of_slice("none", "time-slicing", 4, 15360)
MIG = of_slice("hardware", "", 1, 9984)


def test_a_slice_of_its_own_needs_no_note():
    assert Isolation("hardware") == MIG


@pytest.mark.parametrize("sharing", ["time-slicing", "mps", "consumable-shares", "vgpu"])
def test_nothing_that_is_shared_is_called_isolated(sharing):
    found = of_slice("none", sharing, 4, 23034)
    assert found.level == "none"
    assert found.note


def test_mps_tells_its_limits():
    note = of_slice("none", "mps", 4, 23034).note
    assert "25 %" in note
    assert "5758 MiB" in note


def test_pods_that_share_a_claim_are_not_isolated_from_each_other():
    found = of_allocation(MIG, Sharing("TimeSlicing"), None)
    assert found.level == "none"
    assert "TimeSlicing" in found.note


@pytest.mark.parametrize(
    ("claim", "level"),
    [
        ({"requests": [{"name": "a", "device": "gpu"}]}, "full"),
        ({"requests": [{"name": "a", "device": "gpu"}, {"name": "b", "device": "mig"}]}, "hardware"),
        ({"requests": [{"name": "a", "alternatives": [{"device": "gpu"}, {"device": "mig"}]}]}, "hardware"),
        ({"requests": [{"name": "a", "device": "gpu", "capacity": {"shares": "1"}}]}, "none"),
        ({"requests": [{"name": "a"}], "config": [{"sharing": {"strategy": "MPS"}}]}, "none"),
    ],
)
def test_a_claim_is_as_isolated_as_the_least_that_it_may_get(claim, level):
    assert of_allocation(Isolation("full"), Sharing(), CustomClaim(claim)).level == level


def test_a_claim_on_gpus_that_take_turns_is_as_they_are():
    claim = {"requests": [{"name": "a", "device": "gpu"}]}
    assert of_allocation(SHARED, Sharing(), CustomClaim(claim)) == SHARED


@pytest.mark.parametrize(
    ("count", "hours", "purpose", "sign"),
    [
        (1, 8, "Fine-tuning a 7B model", "fine-tuning"),
        (1, 8, "pretraining run", "pretraining"),
        (1, 8, "10 epochs", "epochs"),
        (2, 8, "", "2 slices at once"),
        (1, 72, "demo", "72 hours"),
    ],
)
def test_what_looks_like_training_on_a_shared_slice_is_warned_against(count, hours, purpose, sign):
    (found,) = warnings("t4/shared", *SHARED, count, Fraction(hours), purpose)
    assert found.reason == "not_isolated"
    assert sign in found.detail
    assert SHARED.note in found.detail


@pytest.mark.parametrize("purpose", ["", "inference of a small model", "a strainer", "constrained decoding"])
def test_other_work_is_not(purpose):
    assert warnings("t4/shared", *SHARED, 1, Fraction(8), purpose) == []


def test_nor_is_training_on_a_slice_of_its_own():
    assert warnings("h100/mig-1g.10gb", *MIG, 7, Fraction(500), "training") == []
