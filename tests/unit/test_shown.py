"""Which allocations a hold quota has shown, while its status lags behind its spec."""

import pytest

from allocations.cluster.kinds import KINDS

GPU = "requests.nvidia.com/gpu"


def quota(status: int, **slices: int) -> dict[str, object]:
    """Facts of a quota whose status shows so many, and whose annotation lists so many of each allocation."""
    return {
        "slices": {name: {"nvidia.com/gpu": count} for name, count in slices.items()},
        "status": {GPU: str(status)},
    }


def shown(*forms: dict[str, object]) -> list[str]:
    """After these forms, one following the other."""
    facts: dict[str, object] = {}
    for form in forms:
        facts = dict(KINDS["ResourceQuota"].carry(facts, form))
    return list(facts["shown"])  # type: ignore[call-overload]


CASES = {
    "nothing listed": ([quota(0)], []),
    "listed, not yet shown": ([quota(0, a=1)], []),
    "shown": ([quota(0, a=1), quota(1, a=1)], ["a"]),
    "shown stays shown while another is added": ([quota(1, a=1), quota(1, a=1, b=2)], ["a"]),
    "all shown once the status follows": ([quota(1, a=1), quota(1, a=1, b=2), quota(3, a=1, b=2)], ["a", "b"]),
    "two added in a row": ([quota(1, z=1), quota(1, z=1, b=1), quota(2, z=1, b=1, a=1)], ["z", "b"]),
    "an earlier one stays shown whatever the others are named": ([quota(1, z=1), quota(1, z=1, a=1)], ["z"]),
    "taken out is shown no more": ([quota(2, a=1, b=1), quota(2, b=1)], ["b"]),
    "a changed count is shown anew": ([quota(1, a=1), quota(1, a=2)], []),
}


@pytest.mark.parametrize(("forms", "wanted"), CASES.values(), ids=CASES.keys())
def test_what_a_quota_has_shown(forms, wanted):
    assert shown(*forms) == wanted
