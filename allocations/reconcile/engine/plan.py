"""Computes the actions that lead from the observed to the desired state. Pure.

The same algorithm serves allocations, projects and the platform. Which objects should exist, and in which order others
are deleted, is in the DesiredState (``allocations.domain.actions``).
"""

from collections.abc import Iterable, Mapping

from allocations.domain.actions import Action, Apply, Delete, DesiredState, digest, is_gone
from allocations.domain.objects import Applied, Manifest, ObservedObject, Ref, Snapshot

IMMUTABLE_KINDS = frozenset({"ResourceClaim", "Pod"})
"""Kinds whose specs cannot be changed in place: a changed manifest does not replace an object that holds slices."""
DELETED = "deleted"
"""Value of ``AppliedObject.intent`` after the API server accepted the object's deletion."""
ACCESS_KINDS = ("RoleBinding", "ServiceAccount")
"""Kinds that give people access to the cluster."""


def stale_refs(desired: Iterable[Manifest], snapshot: Snapshot, applied: Iterable[Ref]) -> list[Ref]:
    """Return the applied objects that are not desired.

    Objects of ACCESS_KINDS are included even if the portal has no record of applying them: a restore of etcd may have
    brought them back. ``snapshot`` has only the portal's objects of these kinds.
    """
    keep = {Ref.of_manifest(manifest) for manifest in desired}
    access = [observed.ref for kind in ACCESS_KINDS for observed in snapshot.of_kind(kind)]
    return [ref for ref in dict.fromkeys([*applied, *access]) if ref not in keep]


def apply_reason(manifest: Manifest, snapshot: Snapshot, applied: Applied | None) -> str:
    """Return why an object must be applied: missing, changed, deleted, replaced or edited; "" if it need not be.

    An applied object that is not observed yet, or only at an earlier revision, is in flight and is not applied again.
    An object that is being deleted is applied once it is gone.
    """
    if applied is None:
        return "missing"
    observed = snapshot.get(applied.ref)
    if observed is not None and observed.deleting:
        return ""
    is_changed = digest(manifest) != applied.intent
    if is_changed and (applied.intent == DELETED or applied.ref.kind not in IMMUTABLE_KINDS):
        return "changed"
    if observed is None:
        return "deleted" if snapshot.is_gone(applied) else ""
    if not snapshot.is_observed_since(applied.ref, applied.resource_version):
        return ""
    if observed.uid != applied.uid:
        return "replaced"
    return "edited" if observed.digest != applied.digest and not is_changed else ""


def _is_deleted(observed: ObservedObject, applied: Applied | None) -> bool:
    """Return whether the object is being deleted: observed so, or the API server accepted its deletion."""
    return observed.deleting or (applied is not None and (applied.intent, applied.uid) == (DELETED, observed.uid))


def plan(desired: DesiredState, snapshot: Snapshot, applied: Mapping[Ref, Applied]) -> list[Action]:
    """Return the actions that lead from ``snapshot`` to ``desired``; none if the cluster is in sync."""
    actions: list[Action] = []
    for manifest in desired.objects:
        if reason := apply_reason(manifest, snapshot, applied.get(Ref.of_manifest(manifest))):
            actions.append(Apply(manifest, reason))
    keep = {Ref.of_manifest(manifest) for manifest in desired.objects}
    for group in desired.unwanted:
        left = [ref for ref in group if ref not in keep and not is_gone(ref, snapshot, applied.get(ref))]
        existing = [(observed, applied.get(ref)) for ref in left if (observed := snapshot.get(ref)) is not None]
        actions += [Delete(each.ref, each.uid) for each, record in existing if not _is_deleted(each, record)]
        if left:
            break
    return actions + list(desired.status)
