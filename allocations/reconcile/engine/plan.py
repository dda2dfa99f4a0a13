"""Computes the difference between desired and observed state, as a list of actions. Pure and generic.

A backend says which objects should exist and which should not, in which order (``allocations.cluster.backends``); the
same difference serves allocations, projects and the platform.
"""

from collections.abc import Collection, Mapping

from allocations.domain.actions import Action, Apply, Delete, DesiredState, digest, is_gone
from allocations.domain.objects import Applied, Manifest, ObservedObject, Ref, Snapshot

IMMUTABLE_KINDS = frozenset({"ResourceClaim", "Pod"})
"""Kinds whose specs cannot be changed in place: what is held by one is not taken away for a better form of it."""
DELETED = "deleted"
"""Stands as the intent of an object whose deletion was answered."""
ACCESS_KINDS = ("RoleBinding", "ServiceAccount")
"""Kinds that give people access to the cluster."""


def unwanted(wanted: Collection[Ref], snapshot: Snapshot, applied: Collection[Ref]) -> list[Ref]:
    """Return what was applied and is not wanted.

    Of the kinds that give access it returns also what the portal has no record of applying: a backup of etcd may have
    restored it. ``snapshot`` has of these kinds only objects of the portal.
    """
    access = [seen.ref for kind in ACCESS_KINDS for seen in snapshot.of_kind(kind)]
    return [ref for ref in dict.fromkeys([*applied, *access]) if ref not in wanted]


def why_apply(manifest: Manifest, snapshot: Snapshot, applied: Applied | None) -> str:
    """Why an object must be applied, or nothing.

    An object that was applied as it should be and is not yet seen, or is seen at an earlier revision, is in flight:
    nothing is known of it yet, so nothing is done. One that is being deleted is made again once it is gone.
    """
    if applied is None:
        return "missing"
    seen = snapshot.get(applied.ref)
    if seen is not None and seen.deleting:
        return ""
    is_changed = digest(manifest) != applied.intent
    if is_changed and (applied.intent == DELETED or applied.ref.kind not in IMMUTABLE_KINDS):
        return "changed"
    if seen is None:
        return "deleted" if snapshot.is_gone(applied) else ""
    if seen.resource_version < applied.resource_version:
        return ""
    if seen.uid != applied.uid:
        return "replaced"
    return "edited" if seen.digest != applied.digest and not is_changed else ""


def _is_deleted(seen: ObservedObject, applied: Applied | None) -> bool:
    """Whether its deletion is under way: seen so, or answered so and in flight."""
    return seen.deleting or (applied is not None and (applied.intent, applied.uid) == (DELETED, seen.uid))


def plan(wanted: DesiredState, snapshot: Snapshot, applied: Mapping[Ref, Applied]) -> list[Action]:
    """The actions that bring the cluster from ``snapshot`` to ``wanted``. Applied to its own result it is empty."""
    actions: list[Action] = []
    for manifest in wanted.objects:
        if why := why_apply(manifest, snapshot, applied.get(Ref.of_manifest(manifest))):
            actions.append(Apply(manifest, why))
    keep = {Ref.of_manifest(manifest) for manifest in wanted.objects}
    for group in wanted.unwanted:
        left = [ref for ref in group if ref not in keep and not is_gone(ref, snapshot, applied.get(ref))]
        going = [(seen, applied.get(ref)) for ref in left if (seen := snapshot.get(ref)) is not None]
        actions += [Delete(seen.ref, seen.uid) for seen, known in going if not _is_deleted(seen, known)]
        if left:
            break
    return actions + list(wanted.status)
