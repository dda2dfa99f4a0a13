"""Reads what the database has of the objects of a batch of observations, and of their allocations, in one statement."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Q, QuerySet

from allocations.cluster.kinds import Observation
from allocations.domain.objects import Ref, Snapshot
from allocations.domain.observed_facts import quota_facts
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, AppliedObject, MirrorObject
from allocations.reconcile import change_targets, mirror, watch_epoch
from allocations.reconcile.engine import applied as applied_objects
from allocations.reconcile.mirror_change import Change
from portal.core.reading import Columns, Rows, read_tables

SHOW_HOLDS = frozenset({"ResourceClaim", "Pod", "ResourceQuota"})
"""Kinds that show whether a slice is held (``allocations.cluster.backends``); a lease only reserves."""
MAX_HOLDS = 20
"""The holds of so many allocations are read together; those of more, as of a list, one by one as they change."""
Name = tuple[str, str]
"""Namespace and name of an allocation."""


@dataclass
class BatchState:
    """What was recorded before the batch, and with each ``wrote`` what is recorded now.

    ``rows`` are the mirror's, of which times are left out; ``applied`` are the records of what the portal applied.
    ``holders`` are the allocations that the observations refer to: of each name the live one, else the one that ended
    last.
    """

    cluster: str
    rows: dict[Ref, MirrorObject | None]
    applied: Mapping[Ref, AppliedObject]
    holders: dict[Name, Allocation]
    _names: set[Name]
    _shown: set[Name] = field(default_factory=set)
    _holds: dict[str, Snapshot] = field(default_factory=dict)

    def read_holders_of(self, changes: Iterable[Change]) -> None:
        """Read the allocations that the mirror's rows refer to and the observations do not. At most one query."""
        names = {(c.new.ref.namespace, name) for c in changes if c.is_relevant for name in c.allocations} - self._names
        if names:
            self.holders |= _by_name(_holders(self.cluster, names), names)

    def wrote(self, ref: Ref, row: MirrorObject | None) -> None:
        """Take the row as the object's present one; None if it is deleted."""
        self.rows[ref] = row
        if (holds := self._holds.get(ref.namespace)) is not None:
            self._holds[ref.namespace] = holds.with_object(ref, mirror.observed_object(row) if row else None)

    def holds(self, namespace: str, allocations: Sequence[Allocation]) -> Snapshot:
        """Return what ``mirror.of_allocations`` returns; no query if the batch shows holds of these allocations."""
        if {(namespace, row.name) for row in allocations} <= self._shown:
            return self._holds[namespace].filtered(mirror.selector_of(allocations))
        return mirror.of_allocations(self.cluster, namespace, allocations)


def read(cluster: str, observations: Sequence[Observation], epoch: int | None = None) -> BatchState:
    """Return what is recorded of the objects and of the allocations that they name; one query.

    With ``epoch``, keep others from writing the mirror until the transaction ends; raises EpochOver if it is over.
    """
    refs = {o.ref for o in observations}
    kinds, namespaces, object_names = ({ref[part] for ref in refs} for part in range(3))
    columns, record_columns = ("pk", *mirror.COLUMNS), ("target", *applied_objects.COLUMNS)
    names = {(o.ref.namespace, name) for o in observations for name in _named(o)}
    show = {(o.ref.namespace, name) for o in observations if o.ref.kind in SHOW_HOLDS for name in _named(o)}
    with_holds = 0 < len(show) <= MAX_HOLDS and all(o.live for o in observations)
    # Of names alone it would be the objects of all projects: many have one name in every namespace.
    rows = MirrorObject.objects.filter(cluster=cluster, kind__in=kinds, namespace__in=namespaces, name__in=object_names)
    found, recorded, holders, epochs, *holds = read_tables(
        Columns(rows, columns),
        Columns(change_targets.applied_objects(cluster, refs), record_columns),
        Rows(_holders(cluster, names)),
        watch_epoch.part(cluster, epoch),
        *(_parts_of_holds(cluster, show) if with_holds else ()),
    )
    watch_epoch.require(epoch, epochs)
    mirrored = (MirrorObject(cluster_id=cluster, **dict(zip(columns, values, strict=True))) for values in found)
    applied = (AppliedObject(**dict(zip(record_columns, values, strict=True))) for values in recorded)
    state = BatchState(
        cluster,
        {ref: row for row in mirrored if (ref := Ref(row.kind, row.namespace, row.name)) in refs},
        {Ref(record.kind, record.namespace, record.name): record for record in applied},
        _by_name(holders, names),
        names,
    )
    if with_holds:
        state._shown = show
        objects, positions = holds
        for namespace in {namespace for namespace, _ in show}:
            own = [values for values in objects if values[1] == namespace]
            state._holds[namespace] = mirror.of_parts(own, positions)
    return state


def _named(observation: Observation) -> set[str]:
    """Return the names of allocations in the object's label, or in the list of a hold quota."""
    slices = {} if observation.gone else quota_facts(observation).get("slices", {})
    return {observation.allocation, *slices} - {""}


def _holders(cluster: str, names: Collection[Name]) -> QuerySet[Allocation]:
    return spec_of_row.of_names(spec_of_row.rows().filter(_is_named(cluster, names)))


def _is_named(cluster: str, names: Collection[Name]) -> Q:
    """Return the condition for allocations with these names, and perhaps one's name in another's namespace."""
    namespaces, own_names = {namespace for namespace, _ in names}, {name for _, name in names}
    return Q(project__cluster=cluster, project__namespace__in=namespaces, name__in=own_names)


def _by_name(rows: Iterable[Allocation], names: Collection[Name]) -> dict[Name, Allocation]:
    return {pair: row for row in rows if (pair := (row.project.namespace, row.name)) in names}


def _parts_of_holds(cluster: str, names: Collection[Name]) -> tuple[Columns, Columns]:
    namespaces = {namespace for namespace, _ in names}
    return mirror.parts_of_allocations(cluster, namespaces, Allocation.objects.filter(_is_named(cluster, names)))
