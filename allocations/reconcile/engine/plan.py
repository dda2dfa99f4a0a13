"""plan(): the difference between what should be and what is, as a list of actions. Pure and generic.

It knows nothing of slices: a slice path says which objects should be and which should not, in which order
(``allocations.cluster.backends``), and the same difference serves allocations, projects and the platform.
"""

from collections.abc import Collection, Mapping

from allocations.domain.actions import Action, Apply, Delete, Wanted, digest, is_gone
from allocations.domain.objects import Applied, Manifest, Ref, Seen, View

AS_MADE = frozenset({"ResourceClaim", "Pod"})
"""Kinds whose specs cannot be changed in place: what is held by one is not taken away for a better form of it."""
DELETED = "deleted"
"""Stands as the intent of an object whose deletion was answered."""
ACCESS_KINDS = ("RoleBinding", "ServiceAccount")
"""Kinds that let people in."""


def unwanted(wanted: Collection[Ref], view: View, applied: Collection[Ref]) -> list[Ref]:
    """What was applied and is not wanted; of what lets people in, also what nobody remembers to have applied: etcd may
    have come back from a backup with it. ``view`` has of these kinds the portal's own alone."""
    lets_in = [seen.ref for kind in ACCESS_KINDS for seen in view.of(kind)]
    return [ref for ref in dict.fromkeys([*applied, *lets_in]) if ref not in wanted]


def why_apply(manifest: Manifest, view: View, applied: Applied | None) -> str:
    """Why an object must be applied, or nothing.

    An object that was applied as it should be and is not yet seen, or is seen at an earlier revision, is in flight:
    nothing is known of it yet, so nothing is done. One that is being deleted is made again once it is gone.
    """
    if applied is None:
        return "missing"
    seen = view.get(applied.ref)
    if seen is not None and seen.deleting:
        return ""
    is_changed = digest(manifest) != applied.intent
    if is_changed and (applied.intent == DELETED or applied.ref.kind not in AS_MADE):
        return "changed"
    if seen is None:
        return "deleted" if view.is_gone(applied) else ""
    if seen.resource_version < applied.resource_version:
        return ""
    if seen.uid != applied.uid:
        return "replaced"
    return "edited" if seen.digest != applied.digest and not is_changed else ""


def _is_deleted(seen: Seen, applied: Applied | None) -> bool:
    """Whether its deletion is under way: seen so, or answered so and in flight."""
    return seen.deleting or (applied is not None and (applied.intent, applied.uid) == (DELETED, seen.uid))


def plan(wanted: Wanted, view: View, applied: Mapping[Ref, Applied]) -> list[Action]:
    """The actions that bring the cluster from ``view`` to ``wanted``. Applied to its own result it is empty."""
    actions: list[Action] = []
    for manifest in wanted.objects:
        if why := why_apply(manifest, view, applied.get(Ref.of(manifest))):
            actions.append(Apply(manifest, why))
    keep = {Ref.of(manifest) for manifest in wanted.objects}
    for group in wanted.unwanted:
        left = [ref for ref in group if ref not in keep and not is_gone(ref, view, applied.get(ref))]
        going = [(seen, applied.get(ref)) for ref in left if (seen := view.get(ref)) is not None]
        actions += [Delete(seen.ref, seen.uid) for seen, known in going if not _is_deleted(seen, known)]
        if left:
            break
    return actions + list(wanted.status)
