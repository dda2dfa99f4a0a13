"""Types for the desired state of objects and the actions that reach it, and tests for deleted objects. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from allocations.domain.objects import Applied, Manifest, Ref, Snapshot


@dataclass(frozen=True)
class Apply:
    """Apply the manifest by server-side apply, for a reason that is logged."""

    manifest: Manifest
    reason: str

    @property
    def ref(self) -> Ref:
        return Ref.of_manifest(self.manifest)


@dataclass(frozen=True)
class Delete:
    """Delete the object if it still has this uid."""

    ref: Ref
    uid: str


@dataclass(frozen=True)
class SetPodsReady:
    """Set the condition PodsReady of a lease, which reports to Kueue whether its slices are held."""

    ref: Ref
    ready: bool
    message: str


@dataclass(frozen=True)
class ReleaseReservation:
    """Clear ``status.admission`` of a lease, so that Kueue releases its quota: the second step of an eviction."""

    ref: Ref
    reason: str
    message: str


Action = Apply | Delete | SetPodsReady | ReleaseReservation


@dataclass(frozen=True)
class DesiredState:
    """The objects that should exist, and those that should not.

    ``objects`` are created in their order. ``unwanted`` are deleted in groups: a group only after all objects of the
    groups before it are known to be gone. ``status`` are changes to the status of leases.
    """

    objects: Sequence[Manifest] = ()
    unwanted: Sequence[Sequence[Ref]] = ()
    status: Sequence[SetPodsReady | ReleaseReservation] = ()


def digest(value: object) -> str:
    """Return the SHA-256 of the value as canonical JSON, in hexadecimal."""
    return sha256(json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode()).hexdigest()


def is_gone(ref: Ref, snapshot: Snapshot, applied: Applied | None) -> bool:
    """Return whether the object is known to be absent, even if it was applied and not observed yet."""
    return snapshot.get(ref) is None and (applied is None or snapshot.is_gone(applied))


def nothing_left(refs: Iterable[Ref], snapshot: Snapshot, applied: Mapping[Ref, Applied]) -> bool:
    """Return whether all these objects are known to be absent."""
    return all(is_gone(ref, snapshot, applied.get(ref)) for ref in refs)
