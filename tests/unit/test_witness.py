"""What the witness takes from the writes that it reads in etcd."""

import json
from pathlib import Path

import pytest

from deploy.local.home import Home
from tests.support.faults import stored
from tests.support.faults.witness import CLAIMS, PODS, QUOTAS, Hold, Slot, Witness

CLAIM, POD, QUOTA = f"{CLAIMS}vision/training", f"{PODS}vision/training-holder", f"{QUOTAS}vision/slot.0"
DEVICE, COUNT = Slot("vision", "training", "h100-1/gpu-0"), Slot("vision", "training", "")
Fields = dict[int, "Fields | bytes | list[Fields]"]


def encoded(fields: Fields) -> bytes:
    """Return the protobuf message with these fields; all are texts, messages, or lists of messages."""
    found = b"\x08\x01"  # a number, which is skipped
    for number, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            content = one if isinstance(one, bytes) else encoded(one)
            size = bytes([len(content)]) if len(content) < 128 else bytes([len(content) & 127 | 128, len(content) >> 7])
            found += bytes([number << 3 | 2]) + size + content
    return found


def value(fields: Fields) -> bytes:
    return stored.MAGIC + encoded({2: fields})


def pod(phase: bytes, *, deleting: bool = False) -> bytes:
    return value({1: {1: b"training-holder"} | ({9: {1: b"soon"}} if deleting else {}), 3: {1: phase}})


def quota(shown: bytes, listed: object) -> bytes:
    annotations: list[Fields] = [{1: stored.SLICES.encode(), 2: json.dumps(listed).encode()}]
    hard = [[Fields({1: b"requests.gpu", 2: {1: amount}})] for amount in (b"2", shown)]
    return value({1: {12: annotations}, 2: {1: hard[0]}, 3: {1: hard[1]}})


FREE = value({1: {1: b"training"}})
ALLOCATED = value({1: {1: b"training"}, 3: {1: {1: {1: [{2: b"gpu.nvidia.com", 3: b"h100-1", 4: b"gpu-0"}]}}}})
PENDING, RUNNING, ENDING = pod(b"Pending"), pod(b"Running"), pod(b"Running", deleting=True)
LISTED = {"training": {"gpu": 2}}


def seen(slot: Slot, *writes: tuple[str, bytes | None]) -> list[Hold]:
    """Return the holds of a slot after writes at 1, 2, 3 ... s."""
    witness = Witness(Home(Path(), {}, Path()))
    for at, (key, written) in enumerate(writes, start=1):
        witness.record(key, written, at, at)
    return witness.holds[slot]


def test_a_hold_begins_when_the_holder_runs_and_ends_when_nothing_is_allocated() -> None:
    writes = [(CLAIM, ALLOCATED), (POD, PENDING), (POD, RUNNING), (POD, ENDING), (POD, None), (CLAIM, FREE)]
    assert seen(DEVICE, *writes) == [Hold((3, 3), (6, 6))]
    assert seen(DEVICE, (POD, RUNNING), (CLAIM, ALLOCATED), (CLAIM, None)) == [Hold((2, 2), (3, 3))]


@pytest.mark.parametrize("holder", [PENDING, ENDING])
def test_devices_whose_holder_does_not_run_are_not_held(holder: bytes) -> None:
    assert seen(DEVICE, (CLAIM, ALLOCATED), (POD, holder), (POD, None), (CLAIM, None)) == []


def test_a_claim_that_is_made_anew_is_held_again_however_soon() -> None:
    writes = [(POD, RUNNING), (CLAIM, ALLOCATED), (CLAIM, None), (CLAIM, FREE), (CLAIM, ALLOCATED)]
    assert seen(DEVICE, *writes) == [Hold((2, 2), (3, 3)), Hold((5, 5))]


def test_a_count_is_held_while_a_quota_lists_it_from_when_its_status_shows_it() -> None:
    writes = [(QUOTA, quota(b"0", LISTED)), (QUOTA, quota(b"2", LISTED)), (QUOTA, quota(b"0", LISTED))]
    assert seen(COUNT, *writes, (QUOTA, quota(b"0", {}))) == [Hold((2, 2), (4, 4))]
    assert seen(COUNT, (QUOTA, quota(b"2", {"training": {}}))) == []


def test_what_it_could_not_follow_is_known_as_a_span_of_time() -> None:
    witness = Witness(Home(Path(), {}, Path()))
    witness.start_over({CLAIM: ALLOCATED, POD: RUNNING, "/registry/replicasets/kube-system/x": b"{}"}, 1, 3)
    witness.start_over({}, 5, 8)
    assert witness.holds[DEVICE] == [Hold((1, 3), (5, 8))]
