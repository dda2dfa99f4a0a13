"""The fields of a request. REST, form, command line, row, lease, audit log and recovery derive from them. Pure.

``allocations.domain.documents`` writes and reads the classes as JSON.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Self
from uuid import UUID

from allocations.domain import documents
from allocations.domain.admission import PRIORITIES
from allocations.domain.custom_claim import CustomClaim
from allocations.domain.documents import FieldInfo, fields_of

MAX_SLICES = 1024
NAME_MAX = 48
NAME = rf"[a-z0-9]([-a-z0-9]{{0,{NAME_MAX - 2}}}[a-z0-9])?"
"""A pattern of names: DNS labels with room for the suffixes of what is built from them (``allocations.cluster.names``).
"""
SPREAD = "spread"
TIME_SLICING, MPS = "TimeSlicing", "MPS"
STRATEGIES = (TIME_SLICING, MPS)
INTERVALS = ("Default", "Short", "Medium", "Long")


@dataclass(frozen=True)
class Constraints:
    """Constraints on the placement of a request's slices. Its JSON has only those that are set."""

    spread: Annotated[bool, FieldInfo("Slices by DRA may be on several nodes. By device plugin they may anyway.")] = (
        False
    )
    same_gpu: Annotated[bool, FieldInfo("All slices on one GPU.")] = False
    same_pcie_root: Annotated[bool, FieldInfo("All on GPUs of one PCIe root.")] = False
    same_clique: Annotated[bool, FieldInfo("All in one NVLink clique (node label nvidia.com/gpu.clique).")] = False
    distinct_gpus: Annotated[bool, FieldInfo("Each slice on a separate GPU.")] = False

    def __bool__(self) -> bool:
        return any(vars(self).values())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the constraints that are set, without ``spread``."""
        return tuple(name for name, is_set in vars(self).items() if is_set and name != SPREAD)

    @classmethod
    def named(cls, names: Iterable[str], *, spread: bool = False) -> Self:
        """Return constraints with these names set."""
        return cls(**dict.fromkeys(names, True), spread=spread)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        return cls(**documents.values(cls, document))

    def to_json(self) -> dict[str, bool]:
        return {name: True for name, is_set in vars(self).items() if is_set}


CONSTRAINTS = tuple(each.name for each in fields_of(Constraints) if each.name != SPREAD)


@dataclass(frozen=True)
class Sharing:
    """How pods share the devices of an allocation; false if they do not. Its JSON has only the fields that are set."""

    strategy: Annotated[str, FieldInfo("TimeSlicing or MPS.", choices=STRATEGIES, is_required=True)] = ""
    interval: Annotated[str | None, FieldInfo("Of TimeSlicing.", choices=INTERVALS)] = None
    active_thread_percentage: Annotated[int | None, FieldInfo("Of MPS, 0 to 100.", minimum=0, maximum=100)] = None
    pinned_memory_limit: Annotated[str | None, FieldInfo("Of MPS, e.g. 10Gi.")] = None
    per_device_pinned_memory_limit: Annotated[
        Mapping[str, str] | None, FieldInfo("Of MPS, by the device's index in the claim.")
    ] = None

    def __bool__(self) -> bool:
        return bool(self.strategy)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        return cls(**documents.values(cls, document))

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value not in (None, "")}


@dataclass(frozen=True)
class Labels:
    """Labels by which costs are grouped and filtered; false if there are none. Pairs of key and value, by key."""

    pairs: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pairs)

    @classmethod
    def from_json(cls, document: Mapping[str, str]) -> Self:
        return cls(tuple(sorted(document.items())))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the labels in a text such as ``app=train,stage=prod``. Raises ValueError for a part without ``=``, or
        a key that is there twice.
        """
        parts = [part.partition("=") for part in text.split(",") if part.strip()]
        pairs = {key.strip(): value.strip() for key, is_pair, value in parts if is_pair}
        if len(pairs) < len(parts):
            raise ValueError("labels are written as key=value, each key once")
        return cls.from_json(pairs)

    def to_json(self) -> dict[str, str]:
        return dict(self.pairs)

    def __str__(self) -> str:
        return ", ".join(f"{key}={value}" for key, value in self.pairs)


@dataclass(frozen=True)
class AllocationSpec:
    """What an allocation should be.

    To add a field to a request, add it here, and a column of the same name to ``Allocation``.
    """

    project: Annotated[str, FieldInfo("Slug.")]
    offering: Annotated[str, FieldInfo("As GET /offerings lists it, e.g. h100/whole.")]
    count: Annotated[int, FieldInfo(f"Slices, 1 to {MAX_SLICES}.", minimum=1, maximum=MAX_SLICES)] = 1
    mode: Annotated[str, FieldInfo("hold.", choices=("hold",))] = "hold"
    name: Annotated[str, FieldInfo("DNS label, unique among the project's live ones; else made.", pattern=NAME)] = ""
    purpose: Annotated[str, FieldInfo(max_length=500, label="Purpose", hint="What it is for; shown to your team.")] = ""
    labels: Annotated[
        Labels, FieldInfo("At most 16, in Kubernetes' syntax: costs are grouped and filtered by them.")
    ] = Labels()
    starts_at: Annotated[datetime | None, FieldInfo("Now, if not given.")] = None
    hours: Annotated[
        Decimal | None, FieldInfo("Duration in hours from the start, summed over evictions. 8 without ends_at.")
    ] = None
    ends_at: Annotated[
        datetime | None, FieldInfo("Instead of hours: a date that stays. Of hours it is null until held.")
    ] = None
    give_up_at: Annotated[
        datetime | None,
        FieldInfo("It ends then if it is not held; else 7 days after the request or its start."),
    ] = None
    priority: Annotated[str, FieldInfo(f"{', '.join(PRIORITIES)}.", choices=tuple(PRIORITIES))] = "normal"
    requeue: Annotated[bool, FieldInfo("Queue again after an eviction.")] = True
    constraints: Constraints = Constraints()
    sharing: Annotated[Sharing, FieldInfo("How pods share its devices; whole and MIG by DRA.")] = Sharing()
    claim: CustomClaim | None = None

    @property
    def slices(self) -> int:
        """The total number of slices; ``count`` is how many of them one pod gets."""
        return self.count

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Return the spec in a JSON object, whose values may be typed already. Raises KeyError or ValueError."""
        return cls(**documents.values(cls, document))

    def to_json(self) -> dict[str, Any]:
        return documents.document(self)


LABELLED = tuple(each for each in fields_of(AllocationSpec) if each.info.label)
"""Text fields that pages show with their label."""


@dataclass(frozen=True)
class AllocationRequest(AllocationSpec):
    """A request as a person sends it: with ``hours`` above 0, or ``ends_at``; the default is 8 hours."""

    give_up_after: Annotated[
        Decimal | None,
        FieldInfo("Instead of give_up_at: hours after the request or its start. It ends then if it is not held."),
    ] = None

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Return the request in the body of a REST request. Raises ValueError for an unknown field."""
        if unknown := sorted(set(document) - {each.name for each in fields_of(cls)}):
            raise ValueError(f"A request has no field {', '.join(unknown)}.")
        return super().from_json(document)

    def to_spec(self, **changes: Any) -> AllocationSpec:
        """Return the spec of the request, with changes such as a generated name, its times and its built claim."""
        values = {each.name: getattr(self, each.name) for each in fields_of(AllocationSpec)}
        return AllocationSpec(**{**values, **changes})

    def request_body(self) -> dict[str, Any]:
        """Return the body of the REST request: project, offering, count, and fields that differ from their default."""
        values = self.to_json()
        is_set = {
            each.name: each.is_required or getattr(self, each.name) != each.default for each in fields_of(type(self))
        }
        first = ("project", "offering", "count", "hours")
        order = [*first, *(name for name in values if name not in first)]
        return {name: values[name] for name in order if is_set[name] or name == "count"}


@dataclass(frozen=True)
class LeaseRecord:
    """The record of an allocation in its lease's annotation, from which a lost row is recreated.

    ``held_seconds`` is the time of its ended holds, of which the last ended at ``held_until``.
    """

    id: str
    number: int | None
    requested_by: str
    created_at: datetime
    spec: AllocationSpec
    held_seconds: Decimal = Decimal(0)
    held_until: datetime | None = None

    @staticmethod
    def id_in(text: str) -> str:
        """Return the id in a lease's annotation; "" if it has none."""
        try:
            document = json.loads(text or "{}")
        except ValueError:
            return ""
        return str(document.get("id", "")) if isinstance(document, dict) else ""

    @classmethod
    def is_of_another(cls, text: str, id_: UUID) -> bool:
        """Return whether the annotation of a lease has the id of another allocation."""
        return cls.id_in(text) not in ("", str(id_))

    def to_text(self) -> str:
        """Return the record as JSON text."""
        fields = documents.document(self)
        del fields["spec"]
        return json.dumps({**self.spec.to_json(), **fields}, sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the record in a lease's annotation. Raises ValueError or KeyError if the text is not a record."""
        document = json.loads(text or "{}")
        return cls(
            id=document["id"],
            number=document.get("number"),
            requested_by=document["requested_by"],
            created_at=datetime.fromisoformat(document["created_at"]),
            spec=AllocationSpec.from_json(document),
            held_seconds=Decimal(document.get("held_seconds") or 0),
            held_until=datetime.fromisoformat(until) if (until := document.get("held_until")) else None,
        )
