"""Compares an observation with the mirror: what changed, and which allocations the change concerns."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from allocations.cluster.kinds import KINDS, Observation
from allocations.domain.objects import Ref
from allocations.domain.observed_facts import HasFacts, gpu_project_facts, quota_facts
from allocations.models import MirrorObject


@dataclass(frozen=True)
class Change:
    """An observation (``new``) and the mirror's row of the same object (``old``); None if it has none."""

    new: Observation
    old: MirrorObject | None

    @property
    def is_stale(self) -> bool:
        return self.old is not None and self.new.resource_version < self.old.resource_version

    @property
    def is_relevant(self) -> bool:
        """Return whether fields changed that the portal reads; the revision changes for others too."""
        old, new = self.old, self.new
        if old is None:
            return not new.gone
        return new.gone or (old.uid, old.digest, old.deleting, old.allocation, old.facts) != (
            new.uid,
            new.digest,
            new.deleting,
            new.allocation,
            new.facts,
        )

    @property
    def is_relabelled(self) -> bool:
        """Return whether the object was of another allocation before."""
        return self.old is not None and self.old.allocation != self.new.allocation

    @property
    def allocations(self) -> set[str]:
        """Return the names of the allocations in the object's label, in the list of a hold quota, or that a guard began
        or ceased to admit.
        """
        return self.labelled_allocations | self.changed_listings | set(self._slices_before) | set(self._slices_after)

    @property
    def labelled_allocations(self) -> set[str]:
        """Return the names of the allocations in the object's label, now and before."""
        return {self.new.allocation, self.old.allocation if self.old else ""} - {""}

    @property
    def changed_listings(self) -> set[str]:
        """Return the names of the allocations whose pods a guard began or ceased to admit."""
        return _listed(self.old) ^ self.listed

    @property
    def listed(self) -> set[str]:
        """Return the names of the allocations whose pods the guard admits now; none if the object is no guard."""
        return _listed(None if self.new.gone else self.new)

    @property
    def changed_holds(self) -> set[str]:
        """Return the names of the allocations whose entry in a hold quota was removed, was changed, or is now in force
        by the quota's status.
        """
        before, after = self._slices_before, self._slices_after
        entries = {name for name in before if before[name] != after.get(name)}
        if quota_facts(self.new).get("shown") and (before != after or not quota_facts(self.old).get("shown")):
            entries |= set(after)
        return entries

    @property
    def _slices_before(self) -> Mapping[str, object]:
        return quota_facts(self.old).get("slices", {})

    @property
    def _slices_after(self) -> Mapping[str, object]:
        return quota_facts(None if self.new.gone else self.new).get("slices", {})


def _listed(guard: HasFacts | None) -> set[str]:
    """Return the names of the allocations whose pods a GpuProject admits; none if the object is another."""
    return set(gpu_project_facts(guard).get("allocations", ()))


def with_kept_facts(
    observations: Iterable[Observation], rows: Mapping[Ref, MirrorObject | None]
) -> Iterator[Observation]:
    """Yield each observation with the facts that its kind keeps from the previous ones, in the mirror or the batch."""
    last = {ref: (row.uid, row.resource_version, row.facts) for ref, row in rows.items() if row is not None}
    for observation in observations:
        uid, revision, facts = last.get(observation.ref, ("", 0, {}))
        if observation.facts is not None and not observation.gone and observation.resource_version >= revision:
            before = facts if observation.uid == uid else {}
            observation = replace(observation, facts=KINDS[observation.ref.kind].merge(before, observation.facts))
            last[observation.ref] = (observation.uid, observation.resource_version, observation.facts or {})
        yield observation
