"""The desired state, the actions that reach it, and whether an object is gone. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from allocations.domain.objects import Applied, Manifest, Ref, Snapshot


@dataclass(frozen=True)
class Apply:
    manifest: Manifest
    why: str

    @property
    def ref(self) -> Ref:
        return Ref.of_manifest(self.manifest)


@dataclass(frozen=True)
class Delete:
    ref: Ref
    uid: str


@dataclass(frozen=True)
class SetPodsReady:
    """Tell Kueue whether the slices of a lease are held."""

    ref: Ref
    ready: bool
    message: str


@dataclass(frozen=True)
class ReleaseReservation:
    """The second step of an eviction: clear ``status.admission`` so that Kueue gives the quota back."""

    ref: Ref
    reason: str
    message: str


Action = Apply | Delete | SetPodsReady | ReleaseReservation


@dataclass(frozen=True)
class DesiredState:
    """``objects`` should exist, in the order in which they are created; ``unwanted`` should not, group after group: a
    group is deleted only after all groups before it are known to be gone.
    """

    objects: Sequence[Manifest] = ()
    unwanted: Sequence[Sequence[Ref]] = ()
    status: Sequence[SetPodsReady | ReleaseReservation] = ()


def digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode()).hexdigest()


def is_gone(ref: Ref, snapshot: Snapshot, applied: Applied | None) -> bool:
    return snapshot.get(ref) is None and (applied is None or snapshot.is_gone(applied))


def nothing_left(refs: Iterable[Ref], snapshot: Snapshot, applied: Mapping[Ref, Applied]) -> bool:
    return all(is_gone(ref, snapshot, applied.get(ref)) for ref in refs)
