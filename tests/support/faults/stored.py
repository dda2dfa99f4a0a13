"""Reads the few fields that show a hold from what the API server stores in etcd: protobuf, decoded by field numbers."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping

MAGIC = b"k8s\0"
SLICES = "gpu-portal.io/slices-of"


def is_running(pod: bytes) -> bool:
    """Return whether a pod runs and is not being deleted."""
    return _at(pod, 3, 1) == [b"Running"] and not _at(pod, 1, 9)


def devices(claim: bytes) -> set[str]:
    """Return ``pool/device`` of each device that is allocated to a ResourceClaim."""
    results = _at(claim, 3, 1, 1, 1)
    return {f"{_text(result, 3)}/{_text(result, 4)}" for result in results}


def slices(quota: bytes) -> dict[str, dict[str, int]]:
    """Return the slices that a hold quota lists, by allocation and resource."""
    listed: dict[str, dict[str, int]] = json.loads(_map(quota, 1, 12).get(SLICES, b"{}"))
    return listed


def is_enforced(quota: bytes) -> bool:
    """Return whether the status of a ResourceQuota shows its amounts."""
    return _map(quota, 2, 1) == _map(quota, 3, 1)


def content(value: bytes) -> bytes:
    """Return the object in a value of etcd, without its envelope."""
    assert value.startswith(MAGIC), f"not protobuf: {value[:40]!r}"
    [raw] = _at(value.removeprefix(MAGIC), 2)
    return raw


def _at(message: bytes, *path: int) -> list[bytes]:
    """Return the values at the end of a path of field numbers, as many as there are."""
    found = [message]
    for number in path:
        found = [value for one in found for value in _fields(one).get(number, ())]
    return found


def _text(message: bytes, number: int) -> str:
    return b"".join(_at(message, number)).decode()


def _map(message: bytes, *path: int) -> Mapping[str, bytes]:
    return {_text(entry, 1): b"".join(_at(entry, 2)) for entry in _at(message, *path)}


def _fields(message: bytes) -> Mapping[int, list[bytes]]:
    found: dict[int, list[bytes]] = defaultdict(list)
    for number, value in _values(message):
        found[number].append(value)
    return found


def _values(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and value of each field that is a text or a message; others are skipped."""
    at = 0
    while at < len(message):
        tag, at = _number(message, at)
        match tag & 7:
            case 0:
                _, at = _number(message, at)
            case 2:
                size, at = _number(message, at)
                yield tag >> 3, message[at : at + size]
                at += size
            case 1 | 5 as fixed:
                at += 8 if fixed == 1 else 4
            case other:
                raise ValueError(f"wire type {other}")


def _number(message: bytes, at: int) -> tuple[int, int]:
    """Return the number that is written from ``at`` on, and where it ends."""
    found = shift = 0
    while True:
        byte = message[at]
        found, shift, at = found | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return found, at
