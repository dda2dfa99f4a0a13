"""A custom DRA claim as it is stored: its document, and under ``built`` what was computed from it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Self

BUILT = "built"
UNITS = "units"
UNITS_PATH = f"{BUILT}__{UNITS}"
"""The units of a stored claim, as a query reads them."""
SLICES_PATHS = ("requests", f"{BUILT}__gpus")
"""What `slices` needs of a stored claim, as a query reads it."""


def slices(count: int, requests: Sequence[Mapping[str, Any]] | None, gpus: str | Fraction | None = None) -> int:
    """Return how many slices an allocation requests or holds: its ``count``, or, given the requests of a custom claim,
    the devices that these request, of alternatives the most.

    For all devices of a node no number is known before: then they are the whole-GPU equivalents ``gpus`` that the claim
    can use at most, rounded up. Devices with admin access are held by others and do not count.
    """
    if requests is None:
        return count
    counts = [
        max(choice.get("count", 1) if choice.get("count") != "all" else 0 for choice in _choices(request))
        for request in requests
        if not request.get("admin_access")
    ]
    is_open = any(choice.get("count") == "all" for request in requests for choice in _choices(request))
    return max(sum(counts), ceil(Fraction(gpus))) if is_open and gpus is not None else sum(counts)


def slices_of(count: int, claim: Mapping[str, Any] | None) -> int:
    """Return `slices` of a stored claim; None: the allocation has none."""
    if claim is None:
        return count
    return slices(count, claim.get("requests", ()), claim.get(BUILT, {}).get("gpus"))


def _choices(request: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return request.get("alternatives") or [request]


@dataclass(frozen=True)
class BuiltClaim:
    """What was computed from a claim when it was requested, and stays when the fleet changes.

    ``spec`` is of its ResourceClaim. ``units`` are the units that its lease reserves, by resource. ``gpus`` are the
    whole-GPU equivalents that it can use at most. ``memory_part`` is the GPU memory that it uses at least (None
    in older claims).
    """

    spec: Mapping[str, Any]
    units: Mapping[str, int]
    gpus: Fraction
    memory_part: Fraction | None = None

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        part = document.get("card_part")
        gpus = Fraction(document["gpus"])
        return cls(document["spec"], document[UNITS], gpus, None if part is None else Fraction(part))

    def to_json(self) -> dict[str, Any]:
        part = {} if self.memory_part is None else {"card_part": str(self.memory_part)}
        return {"spec": dict(self.spec), UNITS: dict(self.units), "gpus": str(self.gpus), **part}


@dataclass(frozen=True)
class CustomClaim:
    """A custom claim. ``document`` is as the person wrote it; ``built`` is None until it was parsed."""

    document: Mapping[str, Any]
    built: BuiltClaim | None = None

    @property
    def sharing_strategies(self) -> set[str]:
        """The strategies by which pods share its devices."""
        configs = [config["sharing"] for config in self.document.get("config", ()) if config.get("sharing")]
        return {str(config["strategy"]) for config in configs}

    @property
    def requests_shares(self) -> bool:
        """Whether it can get a share of a device."""
        return any(choice.get("capacity") for choice in self._choices())

    @property
    def requests_only_gpus(self) -> bool:
        """Whether every device that it can get is a GPU, not a MIG instance."""
        return all(choice.get("device", "gpu") == "gpu" for choice in self._choices())

    def _choices(self) -> list[Mapping[str, Any]]:
        return [choice for request in self.document.get("requests", ()) for choice in _choices(request)]

    @classmethod
    def of_column(cls, stored: Mapping[str, Any] | None) -> Self | None:
        """Return the claim that a row stores; None if it has none."""
        return None if stored is None else cls.from_json(stored)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        built = stored.get(BUILT)
        document = {name: value for name, value in stored.items() if name != BUILT}
        return cls(document, None if built is None else BuiltClaim.from_json(built))

    def to_json(self) -> dict[str, Any]:
        return {**self.document, **({} if self.built is None else {BUILT: self.built.to_json()})}
