"""How many slices a custom claim requests."""

from typing import Any

import pytest

from allocations.domain.custom_claim import slices, slices_of


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([{"device": "gpu", "count": 2}], 2),
        ([{"device": "gpu"}, {"device": "gpu"}], 2),
        ([{"device": "mig", "profile": "1g.10gb", "count": 3}, {"device": "gpu"}], 4),
        ([{"alternatives": [{"device": "gpu"}, {"device": "mig", "profile": "3g.40gb", "count": 2}]}], 2),
        ([{"device": "gpu", "count": 2}, {"device": "gpu", "count": 5, "admin_access": True}], 2),
    ],
    ids=["one request", "two requests", "kinds", "alternatives", "admin access"],
)
def test_the_devices_of_a_claim_are_its_slices(requests: list[dict[str, Any]], expected: int) -> None:
    assert slices(1, requests, "1/7") == expected


def test_all_devices_of_a_node_are_as_many_gpus_as_the_claim_can_use() -> None:
    assert slices(1, [{"device": "gpu", "count": "all"}], "8") == 8
    assert slices(1, [{"device": "mig", "profile": "1g.10gb", "count": "all"}], "8/7") == 2


def test_without_a_claim_the_count_is_that_of_the_slices() -> None:
    assert slices_of(3, None) == 3
    assert slices_of(1, {"requests": [{"count": 2}], "built": {"gpus": "2", "spec": {}, "units": {}}}) == 2
