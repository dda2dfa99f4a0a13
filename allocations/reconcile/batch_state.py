"""Reads what the database has of the objects of a batch of observations, and of their allocations, in one statement,
and keeps what is to be written of them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet

from allocations.cluster.kinds import Observation
from allocations.domain.objects import ObservedObject, Ref, Snapshot
from allocations.domain.observed_facts import quota_facts
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation, AppliedObject, MirrorObject
from allocations.reconcile import mirror, mirror_rows, watch_epoch
from allocations.reconcile.engine import applied as applied_objects
from allocations.reconcile.mirror_change import Change
from portal.core.any_of import AnyOf
from portal.core.query_templates import QueryTemplate
from portal.core.reading import NO_ROWS, Columns, Compiled, Rows, read_tables
from portal.core.writing import WriteStatement, write_rows

SHOW_HOLDS = frozenset({"ResourceClaim", "Pod", "ResourceQuota"})
"""Kinds that show whether a slice is held (``allocations.cluster.backends``); a lease only reserves."""
MAX_HOLDS = 100
"""The holds of so many allocations are read together; those of more, as of a list, one by one as they change."""
MAX_UNWRITTEN = 50
"""So many rows are written at once. What a ResourceSlice publishes may be 100 KiB."""
Name = tuple[str, str]
"""Namespace and name of an allocation."""
APPLIED = ("target", *applied_objects.COLUMNS)


@dataclass
class BatchState:
    """What was recorded before the batch, and with each ``wrote`` what is recorded now.

    ``rows`` are the mirror's, of which times are left out; ``applied`` are the records of what the portal applied.
    ``holders`` are the allocations that the observations refer to: of each name the live one, else the one that ended
    last; without what a spec needs, unless an observation shows holds.

    Rows are written together with what else the batch writes last (``unwritten``), or with ``write`` before something
    reads the mirror.
    """

    cluster: str
    is_first: bool
    """Whether nobody had seen objects of their kind before."""
    rows: dict[Ref, MirrorObject | None]
    applied: Mapping[Ref, AppliedObject]
    holders: dict[Name, Allocation]
    _holders: QueryTemplate
    _names: set[Name]
    _shown: set[Name] = field(default_factory=set)
    _holds: dict[str, dict[Ref, ObservedObject]] = field(default_factory=dict)
    _unwritten: dict[Ref, MirrorObject | None] = field(default_factory=dict)

    def read_holders_of(self, changes: Iterable[Change]) -> None:
        """Read the allocations that the mirror's rows refer to and the observations do not, and what shows their holds.
        At most one query.
        """
        changes = [change for change in changes if change.is_relevant]
        names = _names_of(changes) - self._names
        show = _names_of(change for change in changes if change.new.ref.kind in SHOW_HOLDS) - self._shown
        if not _are_read_together(show, (change.new for change in changes)):
            show = set()
        if names or show:
            rows, objects = read_tables(_of_names(self._holders, self.cluster, names), _holds(self.cluster, show))
            self.holders |= _by_name(rows, names)
            self.keep_holds(show, objects)

    def keep_holds(self, names: Collection[Name], objects: Iterable[Any]) -> None:
        """Take the objects as all that show the holds of allocations with these names."""
        self._shown.update(names)
        for namespace, _ in names:
            self._holds.setdefault(namespace, {})
        for one in map(mirror.observed_object, objects):
            self._holds[one.ref.namespace][one.ref] = one

    def wrote(self, ref: Ref, row: MirrorObject | None) -> None:
        """Take the row as the object's present one; None if it is deleted."""
        if (holds := self._holds.get(ref.namespace)) is not None:
            holds.pop(ref, None)
            if row is not None:
                holds[ref] = mirror.observed_object(row)
        if row is not None or self.rows.get(ref) is not None:
            self._unwritten[ref] = row
        self.rows[ref] = row
        if len(self._unwritten) >= MAX_UNWRITTEN:
            self.write()

    def unwritten(self) -> list[WriteStatement]:
        """Return the statements that write the rows that are not written yet."""
        return list(mirror_rows.writes(self.cluster, self._unwritten))

    def write(self) -> None:
        """Write these rows now. At most one statement."""
        if self._unwritten:
            write_rows([], *self.unwritten())
            self._unwritten.clear()

    def holds(self, namespace: str, allocations: Sequence[Allocation]) -> Snapshot:
        """Return what ``mirror.of_allocations`` returns, but for positions; no query if the batch shows holds of these
        allocations.
        """
        if {(namespace, row.name) for row in allocations} <= self._shown:
            return Snapshot(filter(mirror.selector_of(allocations), self._holds[namespace].values()))
        self.write()
        return mirror.of_allocations(self.cluster, namespace, allocations)


def read(
    cluster: str, observations: Sequence[Observation], epoch: int | None = None, *, is_first: bool = False
) -> BatchState:
    """Return what is recorded of the objects and of the allocations that they name; one query.

    With ``epoch``, keep others from writing the mirror until the transaction ends; raises EpochOver if it is over.
    """
    refs = {o.ref for o in observations}
    names = {(o.ref.namespace, name) for o in observations for name in _named(o)}
    show = {(o.ref.namespace, name) for o in observations if o.ref.kind in SHOW_HOLDS for name in _named(o)}
    if not _are_read_together(show, observations):
        show = set()
    holders_of = _WITH_SPECS if any(ref.kind in SHOW_HOLDS for ref in refs) else _WITHOUT_SPECS
    found, recorded, holders, epochs, objects = read_tables(
        *_of_refs(cluster, refs),
        _of_names(holders_of, cluster, names),
        watch_epoch.part(cluster, epoch),
        _holds(cluster, show),
    )
    watch_epoch.require(epoch, epochs)
    mirrored = (MirrorObject(cluster_id=cluster, **values._asdict()) for values in found)
    applied = (AppliedObject(**values._asdict()) for values in recorded)
    state = BatchState(
        cluster,
        is_first,
        {ref: row for row in mirrored if (ref := Ref(row.kind, row.namespace, row.name)) in refs},
        {Ref(record.kind, record.namespace, record.name): record for record in applied},
        _by_name(holders, names),
        holders_of,
        names,
    )
    state.keep_holds(show, objects)
    return state


def _named(observation: Observation) -> set[str]:
    """Return the names of allocations in the object's label, or in the list of a hold quota."""
    slices = {} if observation.gone else quota_facts(observation).get("slices", {})
    return {observation.allocation, *slices} - {""}


def _names_of(changes: Iterable[Change]) -> set[Name]:
    return {(change.new.ref.namespace, name) for change in changes for name in change.allocations}


def _are_read_together(names: Collection[Name], observations: Iterable[Observation]) -> bool:
    """Return whether what shows the holds of these allocations is read before the observations are recorded."""
    return len(names) <= MAX_HOLDS and all(observation.live for observation in observations)


def _holds(cluster: str, names: Collection[Name]) -> Compiled:
    """Return what to read of the objects that show the holds of allocations with these names."""
    return mirror.part_of_labels(cluster, *_columns(names)) if names else NO_ROWS


def _columns(rows: Collection[tuple[str, ...]]) -> list[list[str]]:
    """Return the different values of each column; there is at least one row."""
    return [list(set(column)) for column in zip(*rows, strict=True)]


def _of_refs(cluster: str, refs: Collection[Ref]) -> list[Compiled]:
    """Return what to read of the objects with these references, and of the records of what was applied of them and of
    their status (``Workload/status``): objects with one's kind, another's namespace, and another's name too.
    """
    kinds, namespaces, names = _columns(refs)
    records = [*kinds, *(f"{kind}/status" for kind in kinds)]
    return _OBJECTS.of(cluster=cluster, kinds=kinds, records=records, namespaces=namespaces, names=names)


def _parts_of_refs(
    cluster: str, kinds: Collection[str], records: Collection[str], namespaces: Collection[str], names: Collection[str]
) -> list[Columns]:
    # Of names alone it would be the objects of all projects: many have one name in every namespace.
    where = AnyOf("namespace", namespaces), AnyOf("name", names)
    return [
        Columns(MirrorObject.objects.filter(AnyOf("kind", kinds), *where, cluster=cluster), mirror.COLUMNS),
        Columns(AppliedObject.objects.filter(AnyOf("kind", records), *where, cluster=cluster), APPLIED),
    ]


_OBJECTS = QueryTemplate(
    _parts_of_refs, cluster=str, kinds=list[str], records=list[str], namespaces=list[str], names=list[str]
)


def _of_names(holders: QueryTemplate, cluster: str, names: Collection[Name]) -> Compiled:
    """Return what to read of the allocations with these names, and perhaps one's name in another's namespace."""
    if not names:
        return NO_ROWS
    namespaces, own_names = _columns(names)
    return holders.of(cluster=cluster, namespaces=namespaces, names=own_names)[0]


def _holders_query(rows: QuerySet[Allocation]) -> QueryTemplate:
    def parts(cluster: str, namespaces: Collection[str], names: Collection[str]) -> list[Rows]:
        where = AnyOf("project__namespace", namespaces), AnyOf("name", names)
        return [Rows(spec_of_row.of_names(rows.filter(*where, project__cluster=cluster)))]

    return QueryTemplate(parts, cluster=str, namespaces=list[str], names=list[str])


_WITH_SPECS = _holders_query(spec_of_row.rows())
_WITHOUT_SPECS = _holders_query(
    Allocation.objects.select_related("project").only("name", "phase", "ended_at", "project__namespace")
)


def _by_name(rows: Iterable[Allocation], names: Collection[Name]) -> dict[Name, Allocation]:
    return {pair: row for row in rows if (pair := (row.project.namespace, row.name)) in names}
