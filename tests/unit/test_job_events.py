"""The Event that tells which GPUs a queued Job was given."""

from allocations.domain.observed_facts import PodCounts
from allocations.reconcile.job_events import message

USED = {"l40s": {"nvidia.com/gpu": 2}}


def test_it_names_amount_resource_flavor_and_model() -> None:
    pods: PodCounts = {"requested": 2, "admitted": 2}
    assert message(USED, pods, {"l40s": "NVIDIA-L40S"}) == "Kueue gave it 2 × nvidia.com/gpu of l40s (NVIDIA-L40S)."


def test_it_says_for_how_many_of_its_pods_by_partial_admission() -> None:
    pods: PodCounts = {"requested": 20, "admitted": 16}
    assert message(USED, pods, {"l40s": "NVIDIA-L40S"}).endswith("That is for 16 of 20 pods at once.")
